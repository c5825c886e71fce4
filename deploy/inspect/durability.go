package inspect

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Checks of what Redis keeps when a process or a machine dies.

func (s *redisServer) appends() (appends, known bool) {
	value, known := s.either("appendonly", "aof_enabled")
	return value == "yes" || value == "1", known
}

func (s *redisServer) judgePersistence() {
	appends, known := s.appends()
	save, knownSave := s.settings["save"]
	fsync, knownFsync := s.settings["appendfsync"]
	s.judge("redis_persistence",
		unknown(!known, "appendonly, appendfsync and save", "It is not visible whether carts survive a restart."),
		serious(!appends && knownSave && save == "", "appendonly yes", "When Redis restarts, all carts are lost, because it keeps nothing on disk."),
		serious(!appends && knownSave, "appendonly yes",
			"If Redis dies, all acknowledged changes since the last snapshot are lost, because it writes only snapshots (save %s).", save),
		serious(!appends, "appendonly yes",
			"If Redis dies, all acknowledged changes since the last snapshot, if there is one, are lost, because it keeps no append-only file."),
		unknown(!knownFsync, "appendfsync", "It is not visible how often Redis flushes its append-only file to the disk."),
		warning(fsync == "everysec", "appendfsync always",
			"If the machine dies, about 1 second of acknowledged changes is lost, in the worst case 2 seconds."),
		serious(fsync != "always", "appendfsync everysec",
			"If the machine dies, acknowledged changes that the operating system has not yet written to the disk are lost, on Linux those of about 30 seconds."),
		ok("Every change is on the disk before it is acknowledged."))
}

// judgeReplay judges whether Redis loads all of its append-only file. Redis loads the file as the
// user default and, unless it is newer than https://github.com/redis/redis/pull/14545, drops
// transactions that this user may not run. Most changes of carts are transactions.
func (s *redisServer) judgeReplay(ctx context.Context, client *redis.Client) {
	hidden, lacking := false, false
	for _, write := range []string{
		"hset " + nobody + " i x", "hsetnx " + nobody + " i x", "hdel " + nobody + " i", "del " + nobody, "rename " + nobody + " " + nobody,
		"pexpireat " + nobody + " 0", // what PEXPIRE becomes in the file
		"hset limit:check 0 x",
	} {
		answer, err := client.ACLDryRun(ctx, "default", words(write)...).Result()
		hidden = hidden || err != nil
		lacking = lacking || answer != "OK" // it says which right
	}
	s.judge("redis_replay",
		unknown(hidden, "the right acl|dryrun of this user, or the rights of the user default",
			"It is not visible whether a restart of Redis loads all changes in its append-only file."),
		serious(lacking, "ACL SETUSER default off resetpass allkeys allchannels +@all, then ACL SAVE",
			"When Redis restarts, it drops most changes in its append-only file, because the user default, as which it loads the file, has too few rights."),
		ok("A restart of Redis loads all changes in its append-only file."))
}

func (s *redisServer) judgeDisk() {
	const setting = "dir, and the space on its disk"
	snapshot, known := s.info["rdb_last_bgsave_status"]
	s.judge("redis_disk",
		unknown(!known, "rdb_last_bgsave_status and aof_last_write_status of INFO", "It is not visible whether Redis can write to its disk."),
		serious(s.info["aof_last_write_status"] == "err", setting, "Changes get a 503 until Redis can write its append-only file again."),
		serious(snapshot == "err", setting,
			"Redis could not write its last snapshot. By default, it then refuses changes (503). Without an append-only file, a restart loses carts."),
		warning(s.info["aof_last_bgrewrite_status"] == "err", setting,
			"The append-only file grows until the disk is full, because Redis could not rewrite it."),
		ok("Redis can write to its disk."))
}
