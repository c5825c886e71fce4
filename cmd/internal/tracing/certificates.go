package tracing

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"

	"commerce/deploy/connect"
)

// readAuthorities reads a file of certificates that the collector's must be signed by.
func readAuthorities(path string) (*x509.CertPool, error) {
	pem, err := connect.ReadRegular(strings.TrimSpace(path))
	if err != nil {
		return nil, err
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(pem) {
		return nil, errors.New("has no certificate in PEM form")
	}
	return authorities, nil
}

// clientCertificates reads the files of the client's certificate and key, if there are any. With
// an error it returns the variable that is wrong.
func clientCertificates(env func(string) string, prefix string) (pair []tls.Certificate, wrong string, err error) {
	certName, keyName := prefix+"CLIENT_CERTIFICATE", prefix+"CLIENT_KEY"
	certPath, keyPath := strings.TrimSpace(env(certName)), strings.TrimSpace(env(keyName))
	switch {
	case certPath == "" && keyPath == "":
		return nil, "", nil
	case certPath == "":
		return nil, certName, errors.New("is required with " + keyName)
	case keyPath == "":
		return nil, keyName, errors.New("is required with " + certName)
	}
	cert, err := connect.ReadRegular(certPath)
	if err != nil {
		return nil, certName, err
	}
	key, err := connect.ReadRegular(keyPath)
	if err != nil {
		return nil, keyName, err
	}
	both, err := tls.X509KeyPair(cert, key)
	return []tls.Certificate{both}, certName, err
}
