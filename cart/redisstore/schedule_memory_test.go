package redisstore_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// memory is a Redis of a simulation: hashes that expire, and the commit script in Go, which TestMemory_DoesWhatRedisDoes compares
// with the real one. Each shard has a master and a replica.
type memory struct {
	shards [2]map[string]hash
	now    func(shard) time.Time
	guests map[string]string // whose cart each merge brings, by its ID, as its note says

	watched   map[string][]string // the members of each key when it was watched
	followers []*follower
	wrong     []string // that followers were not told
	tried     tried
}

// hash is immutable: a replica shares those of its master.
type hash struct {
	members []string  // member, value, member, value, …
	expires time.Time // zero for never
	reply   *[]byte   // to HGETALL, once it is known; nil for an empty hash
}

// of returns the hash with other members.
func (h hash) of(members []string) hash {
	h.members, h.reply = members, new([]byte)
	return h
}

func newMemory(now func(shard) time.Time) *memory {
	return &memory{shards: [2]map[string]hash{{}, {}}, now: now, guests: map[string]string{}, watched: map[string][]string{}, tried: tried{}}
}

// at returns the hash of a key, with the shard that has it.
func (m *memory) at(key string) (h hash, of shard) {
	of = shardOf(key)
	h = m.shards[of][key]
	if len(h.members) == 0 || !h.expires.IsZero() && !m.now(of).Before(h.expires) {
		return hash{}, of
	}
	return h, of
}

func (m *memory) put(key string, h hash) {
	all := m.shards[shardOf(key)]
	if len(h.members) == 0 {
		delete(all, key)
		return
	}
	all[key] = h
}

func (h hash) get(member string) (value string, ok bool) {
	for i := 0; i < len(h.members); i += 2 {
		if h.members[i] == member {
			return h.members[i+1], true
		}
	}
	return "", false
}

func (h hash) without(members []string) hash {
	left := make([]string, 0, len(h.members))
	for i := 0; i < len(h.members); i += 2 {
		if !slices.Contains(members, h.members[i]) {
			left = append(left, h.members[i], h.members[i+1])
		}
	}
	return h.of(left)
}

func (h hash) with(set []string) hash {
	all := make([]string, len(h.members), len(h.members)+len(set))
	copy(all, h.members)
next:
	for i := 0; i+1 < len(set); i += 2 {
		for n := 0; n < len(all); n += 2 {
			if all[n] == set[i] {
				all[n+1] = set[i+1]
				continue next
			}
		}
		all = append(all, set[i], set[i+1])
	}
	return h.of(all)
}

// write runs a command that writes.
func (m *memory) write(command, key string, args []string) {
	h, of := m.at(key)
	switch strings.ToUpper(command) {
	case "HSET":
		m.put(key, h.with(args))
		for i := 0; i < len(args); i += 2 {
			if merge, is := strings.CutPrefix(args[i], "m"); is {
				m.guests[merge], _, _ = strings.Cut(args[i+1], " ")
			}
		}
	case "HDEL":
		m.put(key, h.without(args))
	case "DEL", "UNLINK":
		m.put(key, hash{})
	case "PEXPIRE":
		ms, _ := strconv.ParseInt(args[0], 10, 64)
		if h.expires = m.now(of).Add(time.Duration(ms) * time.Millisecond); len(h.members) > 0 {
			m.put(key, h)
		}
	case "RENAME":
		m.put(args[0], h)
		m.put(key, hash{})
	default:
		panic("the simulation has no " + command)
	}
}

// commit does what commit.lua does.
func (m *memory) commit(keys, args []string) []any {
	first, of := m.at(keys[0])
	now := m.now(of).UnixMilli()
	number := func(i int) int64 { n, _ := strconv.ParseInt(args[i], 10, 64); return n }
	if now < number(0) || now > number(1) {
		return []any{"late", now}
	}
	fence, held := first.get("n")
	same := held == (args[2] != "") && strings.HasSuffix(fence, args[2])
	found := []any{}
	i := 6
	for range number(5) {
		h, _ := m.at(keys[number(i)-1])
		value, ok := h.get(args[i+1])
		want := "-"
		found = append(found, nil)
		if ok {
			want, found[len(found)-1] = "="+value, value
		}
		same = same && want == args[i+2]
		i += 3
	}
	turn, taken := first.get("t")
	wait := int64(0)
	if taken {
		till, whose, _ := strings.Cut(turn, " ")
		left, _ := strconv.ParseInt(till, 10, 64)
		if left -= now; whose != args[3] && left <= 1000 {
			wait = max(left, 0)
		}
	}
	if !same || wait > 0 {
		if wait == 0 && number(4) > 0 && held {
			m.write("HSET", keys[0], []string{"t", fmt.Sprintf("%d %s", now+number(4), args[3])})
		}
		cart := []any{}
		if first, _ := m.at(keys[0]); wait == 0 {
			for _, text := range first.members {
				cart = append(cart, text)
			}
		}
		return []any{"changed", now, wait, cart, found}
	}
	if taken {
		m.write("HDEL", keys[0], []string{"t"})
	}
	announced := ""
	for i < len(args) {
		key, n := number(i+1), int(number(i+2))
		if key > 0 {
			m.write(args[i], keys[key-1], args[i+3:i+3+n])
		} else {
			announced = args[i+4]
			m.publish(args[i+3], announced)
		}
		i += 3 + n
	}
	m.changed(keys[0], first, announced)
	return []any{"applied", now, nil}
}

// run runs the commands of a request; of a transaction, which writes one key, only if that has not changed since it was watched.
func (m *memory) run(cmds []redis.Cmder) error {
	if len(cmds) > 1 && cmds[0].Name() == "multi" {
		key := texts(cmds[1].Args())[1]
		if now, _ := m.at(key); !slices.Equal(now.members, m.watched[key]) {
			return redis.TxFailedErr
		}
	}
	for _, cmd := range cmds {
		if err := m.do(cmd); err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) do(cmd redis.Cmder) error {
	args := texts(cmd.Args())
	switch name := strings.ToLower(args[0]); name {
	case "evalsha", "eval":
		n, _ := strconv.Atoi(args[2])
		cmd.(interface{ SetVal(any) }).SetVal(m.commit(args[3:3+n], args[3+n:]))
	case "hgetall":
		h, _ := m.at(args[1])
		m.all(cmd, h)
	case "hget":
		h, _ := m.at(args[1])
		value, ok := h.get(args[2])
		if !ok {
			cmd.SetErr(redis.Nil)
			return nil
		}
		cmd.(*redis.StringCmd).SetVal(value)
	case "hmget":
		h, _ := m.at(args[1])
		all := make([]any, len(args)-2)
		for i, member := range args[2:] {
			if value, ok := h.get(member); ok {
				all[i] = value
			}
		}
		cmd.(*redis.SliceCmd).SetVal(all)
	case "hkeys":
		h, _ := m.at(args[1])
		var all []string
		for i := 0; i < len(h.members); i += 2 {
			all = append(all, h.members[i])
		}
		cmd.(*redis.StringSliceCmd).SetVal(all)
	case "hlen":
		h, _ := m.at(args[1])
		cmd.(*redis.IntCmd).SetVal(int64(len(h.members) / 2))
	case "exists":
		h, _ := m.at(args[1])
		cmd.(*redis.IntCmd).SetVal(int64(min(len(h.members), 1)))
	case "pttl":
		h, of := m.at(args[1])
		left := time.Duration(-2)
		if len(h.members) > 0 {
			left = h.expires.Sub(m.now(of)).Truncate(time.Millisecond)
		}
		cmd.(*redis.DurationCmd).SetVal(left)
	case "time":
		cmd.(*redis.TimeCmd).SetVal(m.now(customerShard))
	case "del", "unlink":
		for _, key := range args[1:] {
			m.write(name, key, nil)
		}
	case "ssubscribe":
		cmd.Args()[2].(*follower).subscribed = true
	case "ping":
		cmd.Args()[1].(*follower).hearAll()
	case "scan":
		cmd.(*redis.ScanCmd).SetVal(m.like(args[slices.Index(args, "match")+1]), 0)
	case "info":
		cmd.(*redis.InfoCmd).SetVal(map[string]map[string]string{"Server": {"run_id": "simulated"}})
	case "watch":
		h, _ := m.at(args[1])
		m.watched[args[1]] = h.members
	case "pexpire", "unwatch", "multi", "exec": // of a key that never exists
	default:
		return fmt.Errorf("%w: %s", errors.ErrUnsupported, cmd)
	}
	return nil
}

// all sets the reply of HGETALL.
func (m *memory) all(cmd redis.Cmder, h hash) {
	switch cmd := cmd.(type) {
	case *redis.RawCmd:
		if h.reply == nil {
			h = h.of(nil)
		}
		if len(*h.reply) > 0 {
			cmd.SetVal(*h.reply)
			return
		}
		reply := make([]byte, 0, 512)
		reply = append(strconv.AppendInt(append(reply, '*'), int64(len(h.members)), 10), "\r\n"...)
		for _, text := range h.members {
			reply = append(strconv.AppendInt(append(reply, '$'), int64(len(text)), 10), "\r\n"...)
			reply = append(append(reply, text...), "\r\n"...)
		}
		*h.reply = reply
		cmd.SetVal(reply)
	case *redis.MapStringStringCmd:
		all := map[string]string{}
		for i := 0; i < len(h.members); i += 2 {
			all[h.members[i]] = h.members[i+1]
		}
		cmd.SetVal(all)
	case interface{ SetVal(any) }: // a delayed one
	}
}

func (m *memory) like(pattern string) (keys []string) {
	before, after, _ := strings.Cut(strings.ReplaceAll(pattern, `\`, ""), "*")
	after = strings.TrimSuffix(after, "*")
	for _, all := range m.shards {
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if strings.HasPrefix(key, before) && strings.Contains(key[len(before):], after) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// texts are the arguments of a command as they are sent.
func texts(args []any) []string {
	all := make([]string, len(args))
	for i, arg := range args {
		switch arg := arg.(type) {
		case string:
			all[i] = arg
		case int64:
			all[i] = strconv.FormatInt(arg, 10)
		case int:
			all[i] = strconv.Itoa(arg)
		default:
			all[i] = fmt.Sprint(arg)
		}
	}
	return all
}
