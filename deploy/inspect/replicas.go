package inspect

import (
	"strconv"
	"strings"
)

// Checks of a master's replicas, and of the rights of the service's user.

func redisReplicas(r Redis, e Expect) Finding {
	const code = "redis_replicas"
	switch {
	case r.Role != "" && r.Role != "master": // redisRole reports that
		return Finding{}
	case r.Connected == nil:
		return unknown(code, "ROLE", "It is not visible how many replicas are connected.")
	case *r.Connected > 0:
		return ok(code, "Connected replicas: %d.", *r.Connected)
	case e.Durable:
		return serious(code, "replicaof on another server",
			"With DURABILITY=replica, no change is confirmed, because no replica is connected.")
	}
	return warning(code, "replicaof on another server",
		"If this machine is lost, its carts are lost, because no replica is connected.")
}

// redisMerges compares the replicas that a merge waits for with those that can confirm it
// (see docs/operations.md, "Replicas and merges").
func redisMerges(r Redis, e Expect) Finding {
	const code = "redis_merges"
	switch {
	case r.Role != "" && r.Role != "master":
		return Finding{}
	case r.Connected == nil || r.Listed == nil:
		return unknown(code, "ROLE, and CLUSTER NODES or SENTINEL REPLICAS",
			"It is not visible whether all replicas that merges on login wait for are connected.")
	case e.MinReplicas > *r.Connected:
		return serious(code, "REDIS_MIN_REPLICAS, or replicaof on more servers",
			"Merges on login never complete: they wait for %d replicas, but only %d are connected.", e.MinReplicas, *r.Connected)
	case *r.Listed > *r.Connected:
		return serious(code, "replicaof, masteruser and masterauth of the replicas",
			"Merges on login do not complete: they wait for all %d listed replicas, but only %d are connected.", *r.Listed, *r.Connected)
	}
	return ok(code, "All replicas that merges on login wait for are connected.")
}

// redisWrites judges how many replicas the master itself requires for changes.
func redisWrites(r Redis) Finding {
	const code, setting = "redis_min_replicas_to_write", "min-replicas-to-write"
	value, known := r.Config[setting]
	wanted, err := strconv.Atoi(value)
	if !known || err != nil {
		return unknown(code, setting, "It is not visible whether Redis refuses changes when it has too few replicas.")
	}
	switch good, known := r.number("min_slaves_good_slaves"); {
	case wanted > 0 && !known:
		return unknown(code, "min_slaves_good_slaves of INFO", "Redis refuses changes if it has fewer than %d replicas. It is not visible how many it has.", wanted)
	case wanted > int(good):
		return serious(code, setting, "Redis refuses all changes (503): it requires %d replicas, but only %d are up to date.", wanted, good)
	case wanted == 0 && r.Kind == Watched && r.Connected != nil && *r.Connected > 1:
		return warning(code, setting+" 1",
			"A master that loses contact with its replicas and sentinels still accepts changes. They are lost when another master replaces it.")
	}
	return ok(code, "Redis has the replicas that it requires (%d).", wanted)
}

// redisRights judges only the service's user. Other users, such as check, cannot read carts.
func redisRights(r Redis, e Expect) Finding {
	const code, setting = "redis_rights", "the rights of this user (deploy/redis/users.conf)"
	switch {
	case !r.ReadsCarts && e.Serving:
		return serious(code, setting, "All cart calls get a 503, because the user may not read carts (hgetall on cart:*).")
	case !r.ReadsCarts:
		return Finding{}
	}
	var essential, waits []string
	var limits bool
	for _, command := range r.Refused {
		switch command {
		case "role", "wait", "cluster|nodes":
			waits = append(waits, command)
		case LimitKeys:
			limits = true
		default:
			essential = append(essential, command)
		}
	}
	switch {
	case len(essential) > 0:
		return serious(code, setting, "Cart calls get a 503, because the user may not run %s.", strings.Join(essential, ", "))
	case len(waits) > 0:
		return warning(code, setting,
			"If there are replicas, a failover can lose a merge on login, because the user may not run %s.", strings.Join(waits, ", "))
	case limits:
		return warning(code, setting,
			"Each instance counts alone what clients have used up, because the user may not access the keys %s.", LimitKeys)
	}
	return ok(code, "The user may run the commands that were tried.")
}
