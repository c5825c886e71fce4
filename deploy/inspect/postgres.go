package inspect

import (
	"fmt"
	"strings"
	"time"
)

// Postgres is what was read from the Postgres server. A value is nil or missing if the server
// does not show it to this role.
type Postgres struct {
	Server  string
	Failure string // why it does not answer; empty if it does

	Version  *int // as server_version_num
	Settings map[string]Setting
	Standby  *bool
	ICU      *bool
	Schema   Schema

	Unreadable []string // tables of the schema that the role may not read; empty, but not nil, if there are none
	Role       *Role
	Writing    *Writing
	Listening  *bool // whether a notification arrives
	Clock      *Clock
}

// Setting is a setting of Postgres, as it applies to this role.
type Setting struct {
	Value string
	Own   bool // set for this role only, so other roles may have another value
}

// Schema is how a database's schema compares with the one that this program needs.
type Schema struct {
	State SchemaState
	Cause string // why it is not current
}

// SchemaState is the state of a schema.
type SchemaState int

// The states of a schema.
const (
	SchemaUnknown SchemaState = iota
	SchemaHidden              // the role lacks rights
	SchemaCurrent
	SchemaOlder
	SchemaEarly // from before the first release
)

// Role is what the role of DATABASE_URL may do beyond reading, by itself and as any role that it
// is a member of.
type Role struct {
	Superuser    bool // or it may run programs or write files on the server
	CreatesRoles bool
	Writable     []string // tables in which it may insert, update, delete or truncate
	LastUsed     bool     // whether it can record when API tokens were last used
}

// Writing is the oldest transaction that has written something.
type Writing struct {
	For     time.Duration // 0 if there is none
	SeesAll bool          // whether the role sees the transactions of other roles
}

func (p Postgres) onStandby() bool { return p.Standby != nil && *p.Standby }

func judgePostgres(p Postgres) []Finding {
	if p.Failure != "" {
		return applied(p.Server, p, func(p Postgres) Finding {
			return serious("postgres_answers", "DATABASE_URL, or the server",
				"Postgres does not answer: %s. Subscriptions, and carts with products that an instance has not loaded, get a 503.", p.Failure)
		})
	}
	return applied(p.Server, p,
		func(Postgres) Finding { return ok("postgres_answers", "Postgres answers.") },
		postgresVersion, postgresSchema, postgresICU, postgresReads, postgresWrites, postgresLastUsed,
		postgresPrimary, postgresListen, postgresFsync, postgresPages, postgresCommit, postgresIdle, postgresOldest)
}

const oldestPostgres = 150000 // as server_version_num

func postgresVersion(p Postgres) Finding {
	const code = "postgres_version"
	switch {
	case p.Version == nil:
		return unknown(code, "server_version_num", "The version is not visible. The service needs Postgres 15 or later.")
	case *p.Version < oldestPostgres:
		return serious(code, "the version of Postgres", "This is Postgres %d. The migrations need Postgres 15 or later.", *p.Version/10000)
	}
	return ok(code, "This is Postgres %d.", *p.Version/10000)
}

func postgresSchema(p Postgres) Finding {
	const code = "postgres_schema"
	switch p.Schema.State {
	case SchemaHidden:
		return unknown(code, grants, "It is not visible whether the schema has what this release needs, because the role lacks rights (%s).", p.Schema.Cause)
	case SchemaOlder:
		return serious(code, "commerce migrate up", "The service does not start, because it needs a newer schema (%s).", p.Schema.Cause)
	case SchemaEarly:
		return serious(code, "another database, and commerce migrate up there", "The service does not start, because the schema is from before the first release (%s).", p.Schema.Cause)
	case SchemaCurrent:
		return ok(code, "The schema has what this release needs.")
	}
	return serious(code, grants, "The service does not become ready, because it cannot read the version of the schema: %s.", p.Schema.Cause)
}

func postgresICU(p Postgres) Finding {
	const code = "postgres_icu"
	switch {
	case p.ICU == nil:
		return unknown(code, "pg_collation", "It is not visible whether Postgres has ICU, which the migrations need.")
	case !*p.ICU:
		return serious(code, "a Postgres that is built with ICU", "The migrations fail, because Postgres has no collation und-x-icu.")
	}
	return ok(code, "Postgres has ICU.")
}

func postgresReads(p Postgres) Finding {
	const code = "postgres_reads"
	switch {
	case p.Unreadable == nil:
		return unknown(code, "has_table_privilege", "It is not visible whether the role may read all tables of the service.")
	case len(p.Unreadable) > 0:
		return serious(code, grants,
			"The service does not become ready, because its role may not read %s.", few(p.Unreadable))
	}
	return ok(code, "The role may read all tables of the service.")
}

// grants is the command that gives the service's role its rights.
const grants = "SERVICE_ROLE=<role> commerce migrate up, as the owner of the tables"

func postgresWrites(p Postgres) Finding {
	const code, setting = "postgres_writes", "DATABASE_URL: use commerce_service (docs/operations.md, Roles)"
	switch {
	case p.Role == nil:
		return unknown(code, "has_table_privilege", "It is not visible whether the role may write more than it needs to.")
	case p.Role.Superuser:
		return warning(code, setting, "If the service's password leaks, others can do anything in Postgres: the role is a superuser or can become one.")
	case p.Role.CreatesRoles:
		return warning(code, setting, "If the service's password leaks, others can get the rights of other roles: the role may create roles.")
	case len(p.Role.Writable) > 0:
		return warning(code, setting, "If the service's password leaks, others can write to %s. The service does not.", few(p.Role.Writable))
	}
	return ok(code, "The role may write only what the service writes.")
}

func postgresLastUsed(p Postgres) Finding {
	const code = "postgres_last_used"
	switch {
	case p.Schema.State != SchemaCurrent || p.onStandby():
		return Finding{}
	case p.Role == nil:
		return unknown(code, "has_column_privilege", "It is not visible whether uses of API tokens are recorded.")
	case !p.Role.LastUsed:
		return warning(code, grants,
			"Uses of API tokens are not recorded, because the role may not update api_tokens.last_used_at.")
	}
	return ok(code, "The role can record uses of API tokens.")
}

// few lists names, and only the first ones of many.
func few(names []string) string {
	const shown = 3
	if len(names) > shown+1 {
		return fmt.Sprintf("%s and %d other tables", strings.Join(names[:shown], ", "), len(names)-shown)
	}
	return strings.Join(names, ", ")
}
