package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

// program is a peer on Node.
type program struct {
	folder          string // in peers: its pinned packages, its settings and its data
	title, main     string // of its main package
	run             string // shell command that becomes the server
	ready           string // path that has an answer when it is ready
	redis, database bool   // whether it gets one of its own
	settings        []string
	seed            []string // shell commands that fill its database
	newCart         func(ctx context.Context, url string, data seeded) (guestCart, error)
}

// seeded is what the commands of a peer have created. They write it to the file SEED, as JSON.
type seeded struct {
	Key, Region string
	Variants    []string
}

// open installs the peer's packages, fills its database and starts it.
// It uses npm install, which keeps to the lock file too: npm ci finds the one of Medusa
// incomplete, because it lacks the addresses of optional packages for other platforms.
func (p program) open(ctx context.Context, s *stage) (*peer, error) {
	version, err := p.version()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(s.dir, p.folder)
	if err := os.CopyFS(dir, os.DirFS("peers/"+p.folder)); err != nil { // where `go -C cmd/bench run .` starts
		return nil, err
	}
	if _, err := call(ctx, "npm", nil, "install", "--prefix", dir, "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"); err != nil {
		return nil, err
	}
	settings, store, err := p.stores(ctx, s)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "seed.json")
	for _, command := range p.seed {
		if _, err := call(ctx, "sh", append(settings, "SEED="+file), "-c", `cd "$0" && exec `+command, dir); err != nil {
			return nil, err
		}
	}
	var data seeded
	if text, err := os.ReadFile(file); err == nil && json.Unmarshal(text, &data) != nil {
		return nil, fmt.Errorf("%s is not JSON", file)
	}
	start := func(ctx context.Context) (*process, error) {
		return s.http(ctx, settings, p.ready, "sh", "-c", `cd "$0" && HOST=${ADDR%:*} PORT=${ADDR##*:} exec `+p.run, dir)
	}
	running, err := start(ctx)
	return &peer{
		server: &server{running, store}, name: p.title + " " + version, start: start,
		newCart: func(ctx context.Context, url string) (guestCart, error) { return p.newCart(ctx, url, data) },
	}, err
}

// stores creates what the peer keeps its data in.
func (p program) stores(ctx context.Context, s *stage) (settings []string, pids func(context.Context) ([]int, error), err error) {
	settings = append(p.settings, "NODE_ENV=production")
	var redis *process
	var database string
	if p.redis {
		if redis, err = s.redis(ctx, "redis-server"); err != nil {
			return nil, nil, err
		}
		settings = append(settings, "REDIS_URL="+redis.url)
	}
	if p.database {
		if database, err = s.database(ctx); err != nil {
			return nil, nil, err
		}
		settings = append(settings, "DATABASE_URL="+database)
	}
	return settings, stores(redis, database), nil
}

// version is the version of the peer's main package, as its package.json pins it.
func (p program) version() (string, error) {
	text, err := os.ReadFile("peers/" + p.folder + "/package.json")
	if err != nil {
		return "", err
	}
	var pinned struct{ Dependencies map[string]string }
	err = json.Unmarshal(text, &pinned)
	return pinned.Dependencies[p.main], err
}

// message is a request to a peer.
type message struct {
	path   string
	header http.Header
	body   []byte // as JSON; a POST if there is one, otherwise a GET
}

// request returns a new request to the peer at a URL.
func (m message) request(url string) (*http.Request, error) {
	if m.body == nil {
		return newRequest(http.MethodGet, url+m.path, m.header)
	}
	r, err := newRequest(http.MethodPost, url+m.path, m.header)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	setBody(r, m.body)
	return r, nil
}

// send sends the message without measuring it.
func (m message) send(ctx context.Context, url string) (http.Header, []byte, error) {
	r, err := m.request(url)
	if err != nil {
		return nil, nil, err
	}
	response, err := http.DefaultClient.Do(r.WithContext(ctx))
	if err != nil {
		return nil, nil, err
	}
	answer, err := io.ReadAll(response.Body)
	if err = cmp.Or(err, response.Body.Close()); err != nil {
		return nil, nil, err
	}
	refused := response.StatusCode != http.StatusOK ||
		bytes.Contains(answer, []byte(`"errors":[{`)) || bytes.Contains(answer, []byte(`"errorCode":`)) // of GraphQL, with 200
	if refused {
		return nil, nil, fmt.Errorf("%s %s: %s: %s", r.Method, r.URL, response.Status, answer[:min(len(answer), 300)])
	}
	return response.Header, answer, nil
}
