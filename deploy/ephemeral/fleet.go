//go:build unix

package ephemeral

import (
	"errors"
	"os"
	"sync"
)

// Fleet is one shared server of each kind, started at its first use. The zero value is
// ready to use. It is safe for concurrent use.
type Fleet struct {
	home     once[*home]
	redis    once[*Server]
	cluster  once[*RedisCluster]
	postgres once[*Server]
}

// once holds the result of the first call of get.
type once[T any] struct {
	sync.Once
	value T
	err   error
}

func (o *once[T]) get(make func() (T, error)) (T, error) {
	o.Do(func() { o.value, o.err = make() })
	return o.value, o.err
}

// Start starts the servers that the environment does not name, concurrently. It returns
// environment entries ("NAME=url") for all servers.
func (f *Fleet) Start() ([]string, error) {
	kinds := []struct {
		env   string
		start func() (string, error)
	}{{EnvRedis, f.redisURL}, {EnvCluster, f.clusterURL}, {EnvPostgres, f.postgresURL}}

	entries := make([]string, len(kinds))
	errs := make([]error, len(kinds))
	var all sync.WaitGroup
	for i, kind := range kinds {
		if url := os.Getenv(kind.env); url != "" {
			entries[i] = kind.env + "=" + url
			continue
		}
		all.Go(func() {
			url, err := kind.start()
			entries[i], errs[i] = kind.env+"="+url, err
		})
	}
	all.Wait()
	return entries, errors.Join(errs...)
}

// Stop stops all servers and removes their files. The Fleet cannot be used afterwards.
func (f *Fleet) Stop() error {
	var errs []error
	stop := func(s *Server) {
		if s != nil {
			errs = append(errs, s.stop())
		}
	}
	stop(f.redis.value)
	stop(f.postgres.value)
	if c := f.cluster.value; c != nil {
		for _, node := range c.Nodes {
			stop(node)
		}
	}
	if f.home.value != nil {
		errs = append(errs, f.home.value.remove())
	}
	return errors.Join(errs...)
}

func (f *Fleet) homeDir() (*home, error) { return f.home.get(newHome) }

func (f *Fleet) redisURL() (string, error) {
	server, err := f.redis.get(func() (*Server, error) {
		home, err := f.homeDir()
		if err != nil {
			return nil, err
		}
		return startRedis(home, lock{})
	})
	if err != nil {
		return "", err
	}
	return server.URL, nil
}

func (f *Fleet) clusterURL() (string, error) {
	servers, err := f.cluster.get(func() (*RedisCluster, error) {
		home, err := f.homeDir()
		if err != nil {
			return nil, err
		}
		return startCluster(home, lock{}, slowFailover)
	})
	if err != nil {
		return "", err
	}
	return servers.URL, nil
}

func (f *Fleet) postgresURL() (string, error) {
	server, err := f.postgres.get(func() (*Server, error) {
		home, err := f.homeDir()
		if err != nil {
			return nil, err
		}
		return startPostgres(home)
	})
	if err != nil {
		return "", err
	}
	return server.URL, nil
}
