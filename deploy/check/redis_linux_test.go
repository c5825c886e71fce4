package check_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// faster makes replicas copy their master without a pause.
var faster = []string{"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"}

type shop struct {
	container
	service
}

func openShop(t *testing.T, redisURL, durability string) shop {
	t.Helper()
	c := builtImage(t).container(t, nil)
	env := map[string]string{
		"DATABASE_URL": ephemeral.Postgres(t), "REDIS_URL": redisURL, "JWT_SECRET": strings.Repeat("s", 32), "DURABILITY": durability,
	}
	c.run(t, env, "migrate", "up")
	c.run(t, env, "seed")
	return shop{c, c.serve(t, env, "serve")}
}

// add puts a product into a new cart, and returns its token. It waits until the change has the
// durability, "" if the service does not wait for replicas.
func (s shop) add(t *testing.T, durability string) (token string) {
	t.Helper()
	eventually(t, func() error {
		token = rand.Text()
		is, _, err := s.call(t, http.MethodPost, "/cart/add", token)
		if err == nil && is != durability {
			err = fmt.Errorf("the durability of the change is %q, want %q", is, durability)
		}
		return err
	})
	return token
}

func (s shop) wantCart(t *testing.T, token string) {
	t.Helper()
	eventually(t, func() error {
		_, cart, err := s.call(t, http.MethodGet, "/cart", token)
		if err == nil && !strings.Contains(cart, `"count":1,`) {
			err = fmt.Errorf("the cart does not have one product: %s", cart)
		}
		return err
	})
}

// call makes a cart call about one product. A status other than 200 is an error.
func (s shop) call(t *testing.T, method, path, token string) (durability, body string, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.public+path, strings.NewReader(`{"product_id":1,"qty":1}`))
	assert.NoError(t, err)
	request.Header = http.Header{"X-Public-Key": {"pk_demo"}, "X-Cart-Token": {token}, "Content-Type": {"application/json"}}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: status %d: %s", method, path, response.StatusCode, text)
	}
	return response.Header.Get("Durability"), string(text), err
}

// wantChecked waits until `commerce check` has no serious finding about Redis, and no finding
// but ok with the codes.
func (s shop) wantChecked(t *testing.T, redisURL string, codes ...string) {
	t.Helper()
	eventually(t, func() error {
		out, _ := s.command(t, map[string]string{"REDIS_URL": redisURL}, "check", "--json").Output()
		var findings []struct{ Code, Level, Server, Message string }
		err := json.Unmarshal(out, &findings)
		assert.Require(t, err == nil && len(findings) != 0, "commerce check: %v\n%s", err, out)
		for _, f := range findings {
			if f.Level == "serious" || f.Level != "ok" && slices.Contains(codes, f.Code) {
				return fmt.Errorf("commerce check: %s: %s %s: %s", f.Server, f.Level, f.Code, f.Message)
			}
		}
		return nil
	})
}

func TestRedis_OneServerKeepsCartsWhenItRestarts(t *testing.T) {
	t.Parallel()
	secrets := passwords(t)
	server := startRedis(t, secrets, ephemeral.FreePorts(t, 1)[0], "server.conf", strings.NewReplacer())
	server.wantNoAnonymous(t)
	kept := assert.Must(server.client(t).ConfigGet(t.Context(), "slowlog-max-len").Result())(t)
	assert.Equal(t, kept, map[string]string{"slowlog-max-len": "16"}, "entries of the slow log, which have texts of shoppers")
	url := func(user string) string {
		return "redis://" + user + ":" + password(t, secrets, user) + "@" + server.addr()
	}
	s := openShop(t, url("commerce"), "memory")
	token := s.add(t, "")
	server.end(syscall.SIGTERM)
	server.start(t)
	s.wantCart(t, token)
	s.wantChecked(t, url("check"), "redis_eviction", "redis_memory", "redis_disk")
}

// The sentinels make the servers rewrite their files, from which they start again.
func TestRedis_SentinelsPromoteAReplica(t *testing.T) {
	t.Parallel()
	secrets := passwords(t)
	ports := ephemeral.FreePorts(t, 6)
	last := "\nmin-replicas-max-lag 10\n"
	replicaOf := strings.NewReplacer(last, last+"replicaof 127.0.0.1 "+fmt.Sprint(ports[0])+"\n")
	master := startRedis(t, secrets, ports[0], "replicated.conf", strings.NewReplacer(), faster...)
	var replicas []*redisServer
	for _, port := range ports[1:3] {
		replicas = append(replicas, startRedis(t, secrets, port, "replicated.conf", replicaOf, faster...))
	}
	place := strings.NewReplacer("10.0.0.1 6379", "127.0.0.1 "+fmt.Sprint(ports[0]), "commerce 5000", "commerce 1000", "commerce 30000", "commerce 3000")
	var sentinels []string
	for _, port := range ports[3:] {
		sentinel := startRedis(t, secrets, port, "sentinel.conf", place)
		sentinel.wantNoAnonymous(t)
		sentinels = append(sentinels, sentinel.addr())
	}
	url := func(user string) string {
		return "redis://" + user + ":" + password(t, secrets, user) + "@" + strings.Join(sentinels, ",") +
			"/?master=commerce&sentinel_password=" + password(t, secrets, "sentinel")
	}
	s := openShop(t, url("commerce"), "replica")
	s.wantChecked(t, url("check"), "redis_sentinel", "redis_replicas", "redis_min_replicas_to_write")
	token := s.add(t, "confirmed")
	master.end(syscall.SIGKILL)
	s.wantCart(t, token)
	s.add(t, "unconfirmed") // one replica is left, which is enough for changes

	master.start(t) // as a replica of the new master
	eventually(t, func() error {
		role, err := master.role(t)
		if err == nil && (role[0] != "slave" || role[3] != "connected") {
			err = fmt.Errorf("the old master is %v", role)
		}
		return err
	})
	master.end(syscall.SIGTERM)
	master.start(t)
	s.wantChecked(t, url("check"), "redis_sentinel", "redis_replicas", "redis_min_replicas_to_write")

	promoted := replicas[0]
	if role, err := promoted.role(t); err != nil || role[0] != "master" {
		promoted = replicas[1]
	}
	promoted.end(syscall.SIGTERM)
	promoted.start(t)
	role, err := promoted.role(t)
	assert.That(t, err == nil && role[0] == "master", "after a restart, the promoted replica is %v, %v", role, err)
	s.wantCart(t, token)
}

func TestRedis_ClusterReplacesALostMaster(t *testing.T) {
	t.Parallel()
	secrets := passwords(t)
	var nodes []*redisServer
	var addrs []string
	for _, port := range ephemeral.FreePorts(t, 6) {
		node := startRedis(t, secrets, port, "cluster.conf", strings.NewReplacer("cluster-node-timeout 5000", "cluster-node-timeout 1000"), faster...)
		nodes, addrs = append(nodes, node), append(addrs, node.addr())
	}
	nodes[0].wantNoAnonymous(t)
	createCluster(t, secrets, addrs)
	url := func(user string) string {
		return "redis://" + user + ":" + password(t, secrets, user) + "@" + strings.Join(addrs, ",")
	}
	s := openShop(t, url("commerce"), "replica")
	s.wantChecked(t, url("check"), "redis_coverage", "redis_slots", "redis_replicas", "redis_merges")
	var tokens []string
	for range 6 {
		tokens = append(tokens, s.add(t, "confirmed"))
	}
	nodes[0].end(syscall.SIGKILL)
	for _, token := range tokens {
		s.wantCart(t, token)
	}
	nodes[0].start(t)
	s.wantChecked(t, url("check"), "redis_coverage", "redis_slots", "redis_replicas", "redis_merges")
}

// createCluster runs the command in cluster.conf for other addresses.
func createCluster(t *testing.T, secrets string, addrs []string) {
	t.Helper()
	text := strings.ReplaceAll(read(t, "deploy/redis/cluster.conf"), "\\\n#", "")
	command := regexp.MustCompile(`REDISCLI_AUTH=<password> (redis-cli .*--cluster create .*?) 10\.0\.0\.1:6379 .*`).FindStringSubmatch(text)
	assert.Require(t, command != nil, "cluster.conf has no command that creates the cluster")
	words := slices.Concat(strings.Fields(command[1]), addrs, []string{"--cluster-yes"})
	create := exec.CommandContext(t.Context(), words[0], words[1:]...)
	create.Env = []string{"REDISCLI_AUTH=" + password(t, secrets, "admin"), "HOME=" + filepath.Join(secrets, "none")}
	out, err := create.CombinedOutput()
	assert.Require(t, err == nil, "%s: %v\n%s", strings.Join(words, " "), err, out)
}

// passwords returns the folder that deploy/redis/passwords.sh fills.
func passwords(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for range 2 { // the second time keeps the passwords
		out, err := exec.CommandContext(t.Context(), "sh", filepath.Join(root, "deploy/redis/passwords.sh"), dir).CombinedOutput()
		assert.Require(t, err == nil, "passwords.sh: %v\n%s", err, out)
	}
	return dir
}

func password(t *testing.T, secrets, user string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(secrets, user+".password"))
	assert.Require(t, err == nil && len(text) == 40, "the password of %s has %d characters, want 40: %v", user, len(text), err)
	return string(text)
}

// redisServer is a Redis server or a sentinel on a machine of its own: a folder with copies
// of the files that docs/deploy.md puts into /etc/redis.
type redisServer struct {
	secrets   string
	port      int
	arguments []string
	sentinel  bool
	process   *exec.Cmd
	ended     chan error
	log       *bytes.Buffer // to be read when the process has ended
}

func (s *redisServer) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// startRedis starts a server from a file of deploy/redis. The words that stand for addresses
// of other servers are replaced, as an operator would replace them. Settings are arguments
// that make the test faster.
func startRedis(t *testing.T, secrets string, port int, file string, replace *strings.Replacer, settings ...string) *redisServer {
	t.Helper()
	machine := t.TempDir()
	files := strings.NewReplacer("/etc/redis/", machine+"/", "/var/lib/redis", machine)
	for _, name := range []string{
		filepath.Join(root, "deploy/redis/common.conf"), filepath.Join(root, "deploy/redis", file),
		filepath.Join(secrets, "users.acl"), filepath.Join(secrets, "replication.conf"), filepath.Join(secrets, "sentinel.conf"),
	} {
		text := assert.Must(os.ReadFile(name))(t)
		assert.NoError(t, os.WriteFile(filepath.Join(machine, filepath.Base(name)), []byte(replace.Replace(files.Replace(string(text)))), 0o600))
	}
	s := &redisServer{secrets: secrets, port: port, sentinel: file == "sentinel.conf"}
	s.arguments = []string{filepath.Join(machine, file), "--bind", "127.0.0.1", "--port", strconv.Itoa(port)}
	if s.sentinel {
		s.arguments = append(s.arguments, "--sentinel")
	}
	s.arguments = append(s.arguments, settings...)
	t.Cleanup(func() { s.end(syscall.SIGKILL) })
	s.start(t)
	return s
}

func (s *redisServer) start(t *testing.T) {
	t.Helper()
	s.process = exec.Command("redis-server", s.arguments...)
	s.log, s.ended = new(bytes.Buffer), make(chan error, 1)
	s.process.Stdout, s.process.Stderr = s.log, s.log
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err := s.process.Start()
	assert.Require(t, err == nil, "%v (sh deploy/ephemeral/install.sh)", err)
	process, ended := s.process, s.ended // those of this start, also if the process outlives it
	go func() { ended <- process.Wait() }()
	client := s.client(t)
	eventually(t, func() error {
		select {
		case err := <-s.ended:
			s.ended <- err
			t.Fatalf("redis-server %s: %v\n%s", strings.Join(s.arguments, " "), err, s.log)
		default:
		}
		return client.Ping(t.Context()).Err()
	})
}

// end sends a signal and waits for the end of the process. It repeats the signal, because
// Redis ignores SIGTERM while it writes the first AOF of a new replica.
func (s *redisServer) end(signal syscall.Signal) {
	for s.process.Process.Signal(signal) == nil {
		select {
		case err := <-s.ended:
			s.ended <- err
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (s *redisServer) client(t *testing.T) *redis.Client {
	t.Helper()
	options := &redis.Options{Addr: s.addr(), Username: "admin", Password: password(t, s.secrets, "admin"), MaxRetries: -1}
	if s.sentinel { // it has a password, and no users
		options.Username, options.Password = "", password(t, s.secrets, "sentinel")
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// wantNoAnonymous checks that a client without a password can do nothing.
func (s *redisServer) wantNoAnonymous(t *testing.T) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: s.addr(), MaxRetries: -1})
	defer client.Close()
	err := client.Ping(t.Context()).Err()
	assert.That(t, redis.IsAuthError(err), "a client without a password: %v, want a refusal", err)
}

func (s *redisServer) role(t *testing.T) ([]any, error) {
	return s.client(t).Do(t.Context(), "role").Slice()
}

// eventually repeats a check until it succeeds, for up to two minutes of Patience.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	err := errors.New("not checked")
	for start := time.Now(); time.Since(start) < ephemeral.Patience(2*time.Minute); time.Sleep(50 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	t.Fatal(fmt.Errorf("not yet: %w", err))
}
