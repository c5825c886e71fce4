package check_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"commerce/deploy/ephemeral"
)

// authorities is where Go programs look for the certificates of public authorities.
const authorities = "/etc/ssl/certs/ca-certificates.crt"

// The image contains what the program needs: it migrates, serves carts from a read-only root
// as another user, and verifies the certificate of the issuer's keys.
func TestImage_ServesFromAReadOnlyRootAsAnotherUser(t *testing.T) {
	t.Parallel()
	issuer := newIssuer(t)
	image := builtImage(t)
	known, err := os.ReadFile(image.files[authorities])
	if err != nil {
		t.Fatalf("the image has no %s: %v", authorities, err)
	}
	_, arguments, err := image.command()
	if err != nil {
		t.Fatal(err)
	}
	database := ephemeral.Postgres(t)
	for _, test := range []struct {
		name        string
		authorities string
		customer    int // the status of a customer's call
	}{
		{"that knows the issuer's authority", string(known) + issuer.certificate, http.StatusOK},
		{"that does not", string(known), http.StatusServiceUnavailable},
	} {
		c := image.container(t, map[string]string{authorities: test.authorities})
		env := []string{"DATABASE_URL=" + database, "REDIS_URL=" + ephemeral.Redis(t), "JWT_JWKS_URL=" + issuer.keys}
		c.run(t, env, "migrate", "up")
		c.run(t, env, "seed")
		s := c.serve(t, env, arguments...)

		s.want(t, http.StatusOK, s.admin+"/healthz")
		s.want(t, http.StatusOK, s.admin+"/readyz")
		if got := s.want(t, http.StatusOK, s.admin+"/version"); !strings.Contains(got, `"`+rehearsedVersion+`"`) {
			t.Errorf("version %s, want %s", got, rehearsedVersion)
		}
		s.want(t, http.StatusOK, s.public+"/cart", "X-Public-Key", "pk_demo")
		s.want(t, test.customer, s.public+"/cart", "X-Public-Key", "pk_demo", "Authorization", "Bearer "+issuer.token(t))
		s.wantUser(t, image.dockerfile)
		s.wantReadOnlyRoot(t)
		s.wantStops(t)
	}
}

// want sends a GET request and checks the status of the response. It returns the body.
func (s service) want(t *testing.T, status int, url string, headers ...string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != status {
		t.Errorf("GET %s: status %d, want %d: %s", url, response.StatusCode, status, body)
	}
	return string(body)
}

// wantUser checks as whom the process runs, and that it has no capabilities.
func (s service) wantUser(t *testing.T, d dockerfile) {
	t.Helper()
	if os.Geteuid() != 0 {
		return // the kernel shows the user to whom the numbers are mapped
	}
	uid, gid, err := d.user()
	if err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{fmt.Sprintf("\nUid:\t%d\t", uid), fmt.Sprintf("\nGid:\t%d\t", gid), "\nCapEff:\t0000000000000000\n"} {
		if !strings.Contains(string(status), want) {
			t.Errorf("want %q in the status of the process:\n%s", want, status)
		}
	}
}

// wantReadOnlyRoot checks that the process cannot write to its root.
func (s service) wantReadOnlyRoot(t *testing.T) {
	t.Helper()
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^\d+ \d+ \S+ \S+ / ro\b`).Match(mounts) {
		t.Errorf("want a read-only root of the process:\n%s", mounts)
	}
}

// wantStops checks that the process exits with status 0 after SIGTERM.
func (s service) wantStops(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}

// issuer is a server of keys over TLS, whose certificate no public authority has signed.
type issuer struct {
	keys        string // URL
	certificate string // of its authority, in PEM
	private     ed25519.PrivateKey
}

func newIssuer(t *testing.T) issuer {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key := map[string]string{"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": "1", "x": base64.RawURLEncoding.EncodeToString(public)}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{key}})
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that do not know the authority
	server.StartTLS()
	t.Cleanup(server.Close)
	return issuer{
		keys:        server.URL,
		certificate: "\n" + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})),
		private:     private,
	}
}

// token returns a customer's token.
func (i issuer) token(t *testing.T) string {
	t.Helper()
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{"sub": "1001", "store_id": 1, "exp": time.Now().Add(time.Hour).Unix()})
	token.Header["kid"] = "1"
	signed, err := token.SignedString(i.private)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}
