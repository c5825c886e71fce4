//go:build unix

package ephemeral

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"time"
)

// makeCertificate writes a certificate for 127.0.0.1 and its key. Servers and clients use it,
// and it is its own authority. It is valid from a minute ago on, so that a clock that is set
// back a little does not matter. makeCertificate returns a client's TLS settings.
func makeCertificate(certificateFile, keyFile string) (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "ephemeral"},
		NotBefore:   time.Now().Add(-time.Minute),
		NotAfter:    time.Now().Add(30 * time.Minute), // longer than any test
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:        true, BasicConstraintsValid: true,
	}
	der, unsigned := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	secret, unmarshaled := x509.MarshalPKCS8PrivateKey(key)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	pair, err := tls.X509KeyPair(certificate, private)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		errors.Join(unsigned, unmarshaled, err, os.WriteFile(certificateFile, certificate, 0o600), os.WriteFile(keyFile, private, 0o600))
}
