package tracing

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"

	"commerce/deploy/connect"
)

// certificates checks a file of certificates that the collector's must be signed by.
func certificates(path string) error {
	pem, err := connect.ReadRegular(strings.TrimSpace(path))
	if err == nil && !x509.NewCertPool().AppendCertsFromPEM(pem) {
		err = errors.New("has no certificate in PEM form")
	}
	return err
}

// clientCertificate checks the files of the client's certificate and key. It returns the
// variable that is wrong.
func clientCertificate(env func(string) string, prefix string) (string, error) {
	certName, keyName := prefix+"CLIENT_CERTIFICATE", prefix+"CLIENT_KEY"
	certPath, keyPath := strings.TrimSpace(env(certName)), strings.TrimSpace(env(keyName))
	switch {
	case certPath == "" && keyPath == "":
		return "", nil
	case certPath == "":
		return certName, errors.New("is required with " + keyName)
	case keyPath == "":
		return keyName, errors.New("is required with " + certName)
	}
	cert, err := connect.ReadRegular(certPath)
	if err != nil {
		return certName, err
	}
	key, err := connect.ReadRegular(keyPath)
	if err != nil {
		return keyName, err
	}
	_, err = tls.X509KeyPair(cert, key)
	return certName, err
}
