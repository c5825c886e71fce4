package inspect

// Checks of what Redis keeps when a process or a machine dies, or when its memory is full.

func redisPersistence(r Redis) Finding {
	const code = "redis_persistence"
	appends, known := r.either("appendonly", "aof_enabled")
	if !known {
		return unknown(code, "appendonly, appendfsync and save", "Whether carts survive a restart is not visible.")
	}
	if appends == "yes" || appends == "1" {
		return redisFsync(r)
	}
	switch save, known := r.Config["save"]; {
	case known && save == "":
		return serious(code, "appendonly yes", "Redis keeps nothing on disk. When it restarts, all carts are lost.")
	case known:
		return serious(code, "appendonly yes",
			"Redis writes only snapshots (save %s). If it dies, all changes since the last snapshot are lost, although they were acknowledged.", save)
	}
	return serious(code, "appendonly yes",
		"Redis keeps no append-only file. If it dies, all changes since the last snapshot, if there is one, are lost.")
}

// redisFsync judges when an append-only file is flushed to the disk.
func redisFsync(r Redis) Finding {
	const code = "redis_persistence"
	switch fsync, known := r.Config["appendfsync"]; {
	case !known:
		return unknown(code, "appendfsync", "Redis keeps an append-only file. How often it flushes the file to the disk is not visible.")
	case fsync == "everysec":
		return warning(code, "appendfsync always",
			"If the machine dies, about 1 second of acknowledged changes is lost, in the worst case 2 seconds.")
	case fsync != "always":
		return serious(code, "appendfsync everysec",
			"If the machine dies, the acknowledged changes that the operating system has not written yet are lost, on Linux about 30 seconds.")
	}
	return ok(code, "Every change is on the disk before it is acknowledged.")
}

// redisDisk judges whether the last writes to the disk succeeded.
func redisDisk(r Redis) Finding {
	const code = "redis_disk"
	snapshot, known := r.Info["rdb_last_bgsave_status"]
	switch {
	case !known:
		return unknown(code, "rdb_last_bgsave_status and aof_last_write_status of INFO", "Whether Redis can write to its disk is not visible.")
	case r.Info["aof_last_write_status"] == "err":
		return serious(code, "dir, and the space on its disk",
			"Redis could not write its append-only file. Until it can, changes get a 503.")
	case snapshot == "err":
		return serious(code, "dir, and the space on its disk",
			"Redis could not write its last snapshot. By default it then refuses changes (503), and a restart loses carts.")
	case r.Info["aof_last_bgrewrite_status"] == "err":
		return warning(code, "dir, and the space on its disk",
			"Redis could not rewrite its append-only file, which grows until the disk is full.")
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
		return unknown(code, "used_memory and maxmemory of INFO", "How much memory is left is not visible.")
	}
	if limit == 0 {
		return warning(code, "maxmemory",
			"Redis has no memory limit. When the machine has no memory left, the operating system ends Redis, instead of Redis refusing changes.")
	}
	buffers, _ := r.number("mem_not_counted_for_evict") // of replicas and the append-only file
	switch percent := 100 * (used - buffers) / limit; {
	case percent >= 100:
		return serious(code, "maxmemory", "The memory limit is reached. Redis refuses changes (503).")
	case percent >= nearlyFull:
		return warning(code, "maxmemory", "%d %% of the memory limit are used. At 100 %%, Redis refuses changes (503).", percent)
	}
	return ok(code, "Less than %d %% of the memory limit are used.", nearlyFull)
}
