package tracing

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"strings"
)

// certificates checks a file of certificates that the collector's must be signed by.
func certificates(path string) error {
	pem, err := readRegular(path)
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
	cert, err := readRegular(certPath)
	if err != nil {
		return certName, err
	}
	key, err := readRegular(keyPath)
	if err != nil {
		return keyName, err
	}
	_, err = tls.X509KeyPair(cert, key)
	return certName, err
}

// readRegular reads a regular file. Others, such as a pipe, may never end.
func readRegular(path string) ([]byte, error) {
	path = strings.TrimSpace(path)
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	return os.ReadFile(path)
}
