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
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// The files of a guard's certificates. serverFile and clientFile are pairs of a .pem and
// a .key file.
const (
	caFile     = "ca.pem"
	serverFile = "server"
	clientFile = "client"
)

// certificateLife is longer than any test.
const certificateLife = 30 * time.Minute

// makeCertificates creates an authority, a certificate for servers on 127.0.0.1, which
// they also use with each other, and a certificate for clients. It returns a client's
// TLS settings.
func makeCertificates(dir string) (*tls.Config, error) {
	authority, err := newAuthority()
	if err != nil {
		return nil, fmt.Errorf("create authority: %w", err)
	}
	if err := writePEM(filepath.Join(dir, caFile), "CERTIFICATE", authority.certificate.Raw); err != nil {
		return nil, err
	}
	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	if err := authority.issue(filepath.Join(dir, serverFile), usages); err != nil {
		return nil, fmt.Errorf("create certificate for servers: %w", err)
	}
	client := filepath.Join(dir, clientFile)
	if err := authority.issue(client, usages[1:]); err != nil {
		return nil, fmt.Errorf("create certificate for clients: %w", err)
	}
	pair, err := tls.LoadX509KeyPair(client+".pem", client+".key")
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority.certificate)
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	self := certificate("test authority")
	self.IsCA, self.BasicConstraintsValid = true, true
	self.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, self, self, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	signed, err := x509.ParseCertificate(der)
	return &authority{signed, key}, err
}

// issue writes a new certificate and its key to name.pem and name.key.
func (a *authority) issue(name string, usage []x509.ExtKeyUsage) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	leaf := certificate(filepath.Base(name))
	leaf.KeyUsage, leaf.ExtKeyUsage = x509.KeyUsageDigitalSignature, usage
	leaf.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	der, err := x509.CreateCertificate(rand.Reader, leaf, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := writePEM(name+".key", "PRIVATE KEY", secret); err != nil {
		return err
	}
	return writePEM(name+".pem", "CERTIFICATE", der)
}

// certificate returns what all certificates have in common. They are valid from a minute
// ago on, so that a clock that is set back a little does not matter.
func certificate(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-time.Minute),
		NotAfter:     now.Add(certificateLife),
	}
}

func writePEM(file, kind string, der []byte) error {
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
