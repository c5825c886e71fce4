package inspect

import (
	"fmt"
	"slices"
	"strings"
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

func (l Level) rank() int { return slices.Index(Levels(), l) }

func Codes() []string {
	return strings.Fields(`machine_clock
		postgres_answers postgres_clock postgres_fsync postgres_full_page_writes postgres_icu postgres_idle_in_transaction
		postgres_last_used postgres_listen postgres_long_transaction postgres_pooler postgres_primary postgres_reads postgres_schema
		postgres_synchronous_commit postgres_tls postgres_version postgres_writes
		redis_answers redis_clock redis_coverage redis_disk redis_eviction redis_maxmemory redis_memory redis_merges redis_min_replicas_to_write
		redis_persistence redis_replay redis_replicas redis_rights redis_role redis_sentinel redis_slots redis_tls redis_version`)
}

// Finding is the result of one check of one server.
type Finding struct {
	// Code identifies the check. It stays the same in later releases.
	Code  string `json:"code"`
	Level Level  `json:"level"`

	// Server is host:port, or what else was checked, such as "this machine".
	Server string `json:"server"`

	Message string `json:"message"`

	// Setting is what to change, or to look up if the level is Unknown. Empty for OK.
	Setting string `json:"setting"`

	// Connected is the number of replicas that a master has, or hidden, if the code is redis_replicas.
	Connected int `json:"-"`
}

// Repeats reports whether f says the same as a finding of an earlier check. Messages may have other numbers.
func (f Finding) Repeats(earlier Finding) bool {
	return f.Code == earlier.Code && f.Level == earlier.Level && f.Server == earlier.Server
}

type report struct {
	server   string
	findings []Finding
	clock    *clock // nil if the server does not answer, or has none to compare
}

type outcome struct {
	met bool
	Finding
}

// judge adds a finding: the first outcome whose condition is met.
func (r *report) judge(code string, outcomes ...outcome) {
	for _, o := range outcomes {
		if o.met {
			o.Code, o.Server = code, r.server
			r.findings = append(r.findings, o.Finding)
			return
		}
	}
}

func serious(met bool, setting, message string, args ...any) outcome {
	return outcome{met, Finding{Level: Serious, Setting: setting, Message: fmt.Sprintf(message, args...)}}
}

func warning(met bool, setting, message string, args ...any) outcome {
	return outcome{met, Finding{Level: Warning, Setting: setting, Message: fmt.Sprintf(message, args...)}}
}

func unknown(met bool, setting, message string, args ...any) outcome {
	return outcome{met, Finding{Level: Unknown, Setting: setting, Message: fmt.Sprintf(message, args...)}}
}

func ok(message string, args ...any) outcome {
	return outcome{true, Finding{Level: OK, Message: fmt.Sprintf(message, args...)}}
}
