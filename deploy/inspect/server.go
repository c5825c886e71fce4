package inspect

import "time"

// Checks of the Postgres server itself: what a crash loses, and what delays changes.

func postgresPrimary(p Postgres) Finding {
	const code = "postgres_primary"
	switch {
	case p.Standby == nil:
		return unknown(code, "pg_is_in_recovery", "Whether this server is a primary is not visible.")
	case *p.Standby:
		return warning(code, "DATABASE_URL",
			"This server is a hot standby: it sends no notifications, so that changes of the catalog show within 1 second, "+
				"and it does not record uses of API tokens.")
	}
	return ok(code, "This server is a primary.")
}

func postgresListen(p Postgres) Finding {
	const code, setting = "postgres_listen", "DATABASE_URL: connect directly, or through a pooler in session mode"
	switch {
	case p.onStandby(): // postgresPrimary says so
		return Finding{}
	case p.Listening == nil:
		return unknown(code, "LISTEN and pg_notify", "Whether notifications arrive is not visible.")
	case !*p.Listening:
		return warning(code, setting, "Notifications do not arrive, as behind a pooler in transaction mode. "+
			"Changes of the catalog show within 1 second, instead of at once.")
	}
	return ok(code, "Notifications arrive.")
}

// postgresSetting judges a setting by its value.
func postgresSetting(p Postgres, code, name string, judge func(Setting) Finding) Finding {
	value, known := p.Settings[name]
	if !known {
		return unknown(code, name, "The setting %s is not visible.", name)
	}
	return judge(value)
}

func postgresFsync(p Postgres) Finding {
	const code = "postgres_fsync"
	return postgresSetting(p, code, "fsync", func(s Setting) Finding {
		if s.Value != "on" {
			return serious(code, "fsync on", "If the machine dies, the database can be damaged or lose committed changes.")
		}
		return ok(code, "Commits are written to the disk.")
	})
}

func postgresPages(p Postgres) Finding {
	const code = "postgres_full_page_writes"
	return postgresSetting(p, code, "full_page_writes", func(s Setting) Finding {
		if s.Value != "on" {
			return warning(code, "full_page_writes on",
				"If the machine dies while it writes a page, the page can be damaged, unless the file system prevents that.")
		}
		return ok(code, "Pages that were only partly written are repaired.")
	})
}

func postgresCommit(p Postgres) Finding {
	const code = "postgres_synchronous_commit"
	return postgresSetting(p, code, "synchronous_commit", func(s Setting) Finding {
		switch {
		case s.Value == "off":
			return warning(code, "synchronous_commit on",
				"A crash can lose the last commits, such as a revoked API token or the use of a coupon. Changes of subscriptions are exempt.")
		case s.Own:
			return unknown(code, "synchronous_commit", "synchronous_commit is set for this role. What others have, such as the platform, is not visible.")
		}
		return ok(code, "Commits are on the disk before they are acknowledged.")
	})
}

func postgresIdle(p Postgres) Finding {
	const code, setting = "postgres_idle_in_transaction", "idle_in_transaction_session_timeout"
	return postgresSetting(p, code, setting, func(s Setting) Finding {
		switch {
		case s.Own:
			return unknown(code, setting, "%s is set for this role. What others have, such as the platform, is not visible.", setting)
		case s.Value == "0":
			return warning(code, setting, "A client that forgets to end its transaction stops the changes of all stores, for as long as it is connected.")
		}
		return ok(code, "Postgres ends transactions that wait for their client too long.")
	})
}

// longWriting is the age from which a transaction that has written counts as long.
const longWriting = 2 * time.Minute

func postgresOldest(p Postgres) Finding {
	const code = "postgres_long_transaction"
	w := p.Writing
	switch {
	case w != nil && w.For >= longWriting:
		return warning(code, "the transaction (docs/data.md, Long transactions)",
			"The changes of all stores have stopped: a transaction that has written something is open for %s.", w.For.Round(time.Second))
	case w == nil || !w.SeesAll:
		return unknown(code, "pg_stat_activity, as a role with pg_monitor",
			"How long the oldest transaction that writes is open is not visible. It delays the changes of all stores.")
	}
	return ok(code, "No transaction that writes is open for %s.", longWriting)
}
