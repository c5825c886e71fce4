package inspect

// Checks of what Redis keeps when a process or a machine dies, or when its memory is full.

// appends reports whether Redis keeps an append-only file.
func (r Redis) appends() (appends, known bool) {
	value, known := r.either("appendonly", "aof_enabled")
	return value == "yes" || value == "1", known
}

func redisPersistence(r Redis) Finding {
	const code = "redis_persistence"
	appends, known := r.appends()
	if !known {
		return unknown(code, "appendonly, appendfsync and save", "It is not visible whether carts survive a restart.")
	}
	if appends {
		return redisFsync(r)
	}
	switch save, known := r.Config["save"]; {
	case known && save == "":
		return serious(code, "appendonly yes", "When Redis restarts, all carts are lost, because it keeps nothing on disk.")
	case known:
		return serious(code, "appendonly yes",
			"If Redis dies, all acknowledged changes since the last snapshot are lost, because it writes only snapshots (save %s).", save)
	}
	return serious(code, "appendonly yes",
		"If Redis dies, all acknowledged changes since the last snapshot, if there is one, are lost, because it keeps no append-only file.")
}

// redisFsync judges how often an append-only file is flushed to the disk.
func redisFsync(r Redis) Finding {
	const code = "redis_persistence"
	switch fsync, known := r.Config["appendfsync"]; {
	case !known:
		return unknown(code, "appendfsync", "It is not visible how often Redis flushes its append-only file to the disk.")
	case fsync == "everysec":
		return warning(code, "appendfsync always",
			"If the machine dies, about 1 second of acknowledged changes is lost, in the worst case 2 seconds.")
	case fsync != "always":
		return serious(code, "appendfsync everysec",
			"If the machine dies, acknowledged changes that the operating system has not yet written to the disk are lost, on Linux those of about 30 seconds.")
	}
	return ok(code, "Every change is on the disk before it is acknowledged.")
}

// redisReplay judges whether Redis loads all of its append-only file. Redis loads the file as the
// user default and, unless it is newer than https://github.com/redis/redis/pull/14545, drops
// transactions that this user may not run. Most changes of carts are transactions.
func redisReplay(r Redis) Finding {
	const code = "redis_replay"
	appends, known := r.appends()
	switch {
	case known && !appends:
		return Finding{}
	case r.Replays == nil:
		return unknown(code, "the right acl|dryrun of this user, or the rights of the user default",
			"It is not visible whether a restart of Redis loads all changes in its append-only file.")
	case !*r.Replays:
		return serious(code, "ACL SETUSER default off resetpass allkeys allchannels +@all, then ACL SAVE",
			"When Redis restarts, it drops most changes in its append-only file, because the user default, as which it loads the file, has too few rights.")
	}
	return ok(code, "A restart of Redis loads all changes in its append-only file.")
}

// redisDisk judges whether the latest writes to the disk succeeded.
func redisDisk(r Redis) Finding {
	const code = "redis_disk"
	snapshot, known := r.Info["rdb_last_bgsave_status"]
	switch {
	case !known:
		return unknown(code, "rdb_last_bgsave_status and aof_last_write_status of INFO", "It is not visible whether Redis can write to its disk.")
	case r.Info["aof_last_write_status"] == "err":
		return serious(code, "dir, and the space on its disk",
			"Changes get a 503 until Redis can write its append-only file again.")
	case snapshot == "err":
		return serious(code, "dir, and the space on its disk",
			"Redis could not write its last snapshot. By default, it then refuses changes (503). Without an append-only file, a restart loses carts.")
	case r.Info["aof_last_bgrewrite_status"] == "err":
		return warning(code, "dir, and the space on its disk",
			"The append-only file grows until the disk is full, because Redis could not rewrite it.")
	}
	return ok(code, "Redis can write to its disk.")
}

// nearlyFull is the percentage of maxmemory from which memory counts as nearly full.
const nearlyFull = 90

func redisMemory(r Redis) Finding {
	const code = "redis_memory"
	used, knownUsed := r.number("used_memory")
	limit, known := r.number("maxmemory")
	if !knownUsed || !known {
		return unknown(code, "used_memory and maxmemory of INFO", "It is not visible how much memory is left.")
	}
	if limit == 0 {
		return warning(code, "maxmemory",
			"If the machine runs out of memory, the operating system kills Redis. With a memory limit, Redis would refuse changes (503) instead.")
	}
	buffers, _ := r.number("mem_not_counted_for_evict") // of replicas and the append-only file
	switch percent := 100 * (used - buffers) / limit; {
	case percent >= 100:
		return serious(code, "maxmemory", "Redis refuses changes (503), because it has reached its memory limit.")
	case percent >= nearlyFull:
		return warning(code, "maxmemory", "Redis uses %d %% of its memory limit. At 100 %%, it refuses changes (503).", percent)
	}
	return ok(code, "Redis uses less than %d %% of its memory limit.", nearlyFull)
}
