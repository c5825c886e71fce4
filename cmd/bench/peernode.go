package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// peerFiles has a folder for each peer on Node: its pinned packages, its settings and its data.
//
//go:embed peers
var peerFiles embed.FS

// nodePeer is a peer on Node, whose packages are installed in dir.
type nodePeer struct {
	name, dir string // the name has the version
	settings  []string
	run       string // shell command that becomes the server
}

// newNodePeer installs the peer in a folder. title and name are those of its main package.
func newNodePeer(ctx context.Context, s *stage, folder, title, name string) (nodePeer, error) {
	version, err := versionOf(folder, name)
	if err != nil {
		return nodePeer{}, err
	}
	dir, err := installPeer(ctx, s, folder)
	return nodePeer{name: title + " " + version, dir: dir, settings: []string{"NODE_ENV=production"}}, err
}

// installPeer copies the folder of a peer, and installs its packages unless an earlier run did. It
// uses npm install, which keeps to the lock file too: npm ci finds the one of Medusa incomplete,
// because it lacks the addresses of optional packages for other platforms.
func installPeer(ctx context.Context, s *stage, folder string) (string, error) {
	dir := filepath.Join(s.dir, folder)
	if s.peers != "" {
		var err error
		if dir, err = filepath.Abs(filepath.Join(s.peers, folder)); err != nil {
			return "", err
		}
	}
	files, err := fs.Sub(peerFiles, "peers/"+folder)
	if err != nil {
		return "", err
	}
	if err := overwrite(dir, files); err != nil {
		return "", err
	}
	_, err = os.Stat(filepath.Join(dir, "node_modules"))
	if errors.Is(err, fs.ErrNotExist) {
		_, err = call(ctx, "npm", nil, "install", "--prefix", dir, "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	}
	return dir, err
}

// versionOf returns the version of a package of a peer, as its package.json pins it.
func versionOf(folder, name string) (string, error) {
	text, err := peerFiles.ReadFile("peers/" + folder + "/package.json")
	if err != nil {
		return "", err
	}
	var pinned struct {
		Dependencies map[string]string
	}
	if err := json.Unmarshal(text, &pinned); err != nil {
		return "", err
	}
	return pinned.Dependencies[name], nil
}

// overwrite copies files to a directory, which may have older ones.
func overwrite(dir string, files fs.FS) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, path), text, 0o644)
	})
}

// seed runs a command that fills the peer's database and writes what it has created to the file
// SEED, as JSON.
func (p nodePeer) seed(ctx context.Context, into any, commands ...string) error {
	file := filepath.Join(p.dir, "seed.json")
	settings := append(p.settings, "SEED="+file)
	for _, command := range commands {
		if _, err := call(ctx, "sh", settings, "-c", `cd "$0" && exec `+command, p.dir); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// start starts a process of the peer.
func (p nodePeer) start(ctx context.Context, ready string) (*process, error) {
	process, err := startHTTP(ctx, p.settings, responds(ready), "sh", "-c", `cd "$0" && HOST=${ADDR%:*} PORT=${ADDR##*:} exec `+p.run, p.dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	process.admin = "" // it has no metrics
	return process, nil
}

// open starts the peer on a stage.
func (p nodePeer) open(ctx context.Context, s *stage, ready string, store func(context.Context) ([]int, error)) (*peer, error) {
	start := func(ctx context.Context) (*process, error) { return p.start(ctx, ready) }
	running, err := s.keep(start(ctx))
	if err != nil {
		return nil, err
	}
	return &peer{server: &server{running, store}, name: p.name, start: start}, nil
}
