package inspect

import "time"

// Checks of the Postgres server itself: what a crash loses, and what delays changes.

func postgresPrimary(p Postgres) Finding {
	const code = "postgres_primary"
	switch {
	case p.Standby == nil:
		return unknown(code, "pg_is_in_recovery", "It is not visible whether this server is a primary.")
	case *p.Standby:
		return warning(code, "DATABASE_URL",
			"This server is a hot standby. It sends no notifications, so changes of the catalog can take 1 second to show. "+
				"It does not record uses of API tokens.")
	}
	return ok(code, "This server is a primary.")
}

func postgresListen(p Postgres) Finding {
	const code, setting = "postgres_listen", "DATABASE_URL: connect directly, or through a pooler in session mode"
	switch {
	case p.onStandby(): // postgresPrimary reports that
		return Finding{}
	case p.Listening == nil:
		return unknown(code, "LISTEN and pg_notify", "It is not visible whether notifications arrive.")
	case !*p.Listening:
		return warning(code, setting, "Changes of the catalog can take 1 second to show, because notifications do not arrive. "+
			"A possible cause is a pooler in transaction mode.")
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
		return ok(code, "Postgres repairs pages that were only partly written.")
	})
}

func postgresCommit(p Postgres) Finding {
	const code = "postgres_synchronous_commit"
	return postgresSetting(p, code, "synchronous_commit", func(s Setting) Finding {
		switch {
		case s.Value == "off":
			return warning(code, "synchronous_commit on",
				"A crash can lose the last commits, such as a revocation of an API token or a use of a coupon. Changes of subscriptions are not affected.")
		case s.Own:
			return unknown(code, "synchronous_commit", "synchronous_commit is set for this role. Its value for other roles, such as the platform's, is not visible.")
		}
		return ok(code, "Commits are on the disk before they are acknowledged.")
	})
}

func postgresIdle(p Postgres) Finding {
	const code, setting = "postgres_idle_in_transaction", "idle_in_transaction_session_timeout"
	return postgresSetting(p, code, setting, func(s Setting) Finding {
		switch {
		case s.Own:
			return unknown(code, setting, "%s is set for this role. Its value for other roles, such as the platform's, is not visible.", setting)
		case s.Value == "0":
			return warning(code, setting, "If a client does not end its transaction, it delays the subscription changes of all stores while it stays connected.")
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
			"The subscription changes of all stores are delayed: a writing transaction has been open for %s.", w.For.Round(time.Second))
	case w == nil || !w.SeesAll:
		return unknown(code, "pg_stat_activity, as a role with pg_monitor",
			"It is not visible how long the oldest writing transaction has been open. A long one delays the subscription changes of all stores.")
	}
	return ok(code, "No writing transaction has been open for %s.", longWriting)
}
