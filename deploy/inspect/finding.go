// Package inspect judges the Redis and Postgres servers that the service uses: it finds the
// settings that would lose carts or break a promise of the documentation. Its input is what
// package observe has read. It does not connect to anything.
package inspect

import (
	"cmp"
	"fmt"
	"slices"
)

// Level says how bad a finding is.
type Level string

// The levels, the worst first.
const (
	Serious Level = "serious" // carts can be lost, or a promise is broken
	Warning Level = "warning" // a limited loss, or one that needs a further failure
	Unknown Level = "unknown" // the server does not show it to this user
	OK      Level = "ok"
)

// Levels returns all levels, the worst first.
func Levels() []Level { return []Level{Serious, Warning, Unknown, OK} }

// Finding is the result of one check of one server.
type Finding struct {
	// Code identifies the check. It stays the same in later releases.
	Code  string `json:"code"`
	Level Level  `json:"level"`

	// Server is host:port, or what else was checked, such as "this machine".
	Server string `json:"server"`

	// Message is a sentence that says what would happen.
	Message string `json:"message"`

	// Setting is what to change or, if the level is Unknown, what to look up. Empty if
	// the level is OK.
	Setting string `json:"setting"`
}

// The zero Finding means that a check does not apply to a server.

func ok(code, message string, args ...any) Finding {
	return Finding{Code: code, Level: OK, Message: fmt.Sprintf(message, args...)}
}

func serious(code, setting, message string, args ...any) Finding {
	return Finding{Code: code, Level: Serious, Setting: setting, Message: fmt.Sprintf(message, args...)}
}

func warning(code, setting, message string, args ...any) Finding {
	return Finding{Code: code, Level: Warning, Setting: setting, Message: fmt.Sprintf(message, args...)}
}

func unknown(code, setting, message string, args ...any) Finding {
	return Finding{Code: code, Level: Unknown, Setting: setting, Message: fmt.Sprintf(message, args...)}
}

// Expect contains the settings of the service that the servers must match.
type Expect struct {
	MinReplicas int  // REDIS_MIN_REPLICAS
	Durable     bool // DURABILITY=replica
	Serving     bool // the user of Redis is the service's
}

// Observation is what was read from the servers.
type Observation struct {
	Redis     []Redis
	Sentinels []Sentinel
	Cluster   *Cluster // nil if Redis is not a cluster, or no node describes it
	Postgres  *Postgres
}

// Judge returns a finding for each check of each server, the worst ones first.
func Judge(o Observation, e Expect) []Finding {
	all := judgeSentinels(o.Sentinels)
	if o.Cluster != nil {
		all = append(all, judgeCluster(*o.Cluster))
	}
	for _, r := range o.Redis {
		all = append(all, judgeRedis(r, e)...)
	}
	if o.Postgres != nil {
		all = append(all, judgePostgres(*o.Postgres)...)
	}
	all = append(all, judgeClocks(o)...)
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Compare(slices.Index(Levels(), a.Level), slices.Index(Levels(), b.Level))
	})
	return all
}

// applied runs rules on what was observed of one server, and keeps the findings of those that
// apply.
func applied[O any](server string, observed O, rules ...func(O) Finding) []Finding {
	var all []Finding
	for _, rule := range rules {
		if f := rule(observed); f.Code != "" {
			f.Server = server
			all = append(all, f)
		}
	}
	return all
}
