package connect

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

type tlsFiles struct {
	ca        string // certificate authorities to trust instead of the system's
	cert, key string // client certificate
}

// config reads the files. Like those of parseRedisURL, its errors name the parameter but not its
// value. ServerName stays empty: each node is verified by the name that is dialed.
func (f tlsFiles) config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.ca != "" {
		pem, err := ReadRegular(f.ca)
		if err != nil {
			return nil, fmt.Errorf("ca_file: %w", withoutPath(err))
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("ca_file holds no certificate in PEM format")
		}
	}
	if (f.cert == "") != (f.key == "") {
		return nil, errors.New("cert_file and key_file need each other")
	}
	if f.cert != "" {
		if _, err := f.pair(); err != nil {
			return nil, err
		}
		// Read for every connection, so that a renewed certificate needs no restart.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return f.pair() }
	}
	return c, nil
}

func (f tlsFiles) pair() (*tls.Certificate, error) {
	cert, err := ReadRegular(f.cert)
	if err != nil {
		return nil, fmt.Errorf("cert_file: %w", withoutPath(err))
	}
	key, err := ReadRegular(f.key)
	if err != nil {
		return nil, fmt.Errorf("key_file: %w", withoutPath(err))
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("cert_file and key_file: %w", err)
	}
	return &pair, nil
}

func withoutPath(err error) error {
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		return file.Err
	}
	return err
}

// ReadRegular refuses files that may never end or block, such as a device or a pipe.
func ReadRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	return os.ReadFile(path)
}
