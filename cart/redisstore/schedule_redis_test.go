package redisstore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"commerce/cart/redisstore"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// The commits of simulations do what those of a real Redis do.
func TestMemory_DoesWhatRedisDoes(t *testing.T) {
	t.Parallel()
	client := dial(t, ephemeral.Redis(t))
	rapid.Check(t, func(r *rapid.T) {
		store := newStoreID()
		now := assert.Must(client.Time(t.Context()).Result())(t)
		m := newMemory(func(shard) time.Time { return now })
		ref := redisstore.CustomerRef(store, "c")
		keys := []string{ref.CartKey(), ref.ClaimedKey(), ref.KeysKey()}
		script := redis.NewScript(redisstore.CommitLua)
		for range rapid.IntRange(1, 12).Draw(r, "commits") {
			args := drawCommit(r, keys, now)
			want, err := script.Run(t.Context(), client, keys, args...).Slice()
			if err != nil {
				r.Fatal(err)
			}
			now = time.UnixMilli(want[1].(int64))
			simulated := m.commit(keys, texts(args))
			if want[0] == "changed" {
				want[3], simulated[3] = sorted(want[3].([]any)), sorted(simulated[3].([]any))
			}
			if diff := cmp.Diff(want, simulated[:len(want)]); diff != "" {
				r.Fatalf("%q\n(-Redis +memory)\n%s", args, diff)
			}
			for _, key := range keys {
				h, _ := m.at(key)
				held, left := client.HGetAll(t.Context(), key).Val(), client.PTTL(t.Context(), key).Val()
				if diff := cmp.Diff(held, mapOf(h.members)); diff != "" || len(held) > 0 && (left > 0) != !h.expires.IsZero() {
					r.Fatalf("%q\n%s lives for %v (-Redis +memory)\n%s", args, key, left, diff)
				}
			}
		}
		client.Del(t.Context(), keys...)
	})
}

// drawCommit draws the arguments of a commit to few members, so that many fit what is there.
func drawCommit(r *rapid.T, keys []string, now time.Time) []any {
	marks := []string{"", "aaaaaa", "bbbbbb"}
	from, until := now.Add(-time.Hour).UnixMilli(), now.Add(time.Hour).UnixMilli()
	if rapid.IntRange(0, 9).Draw(r, "late") == 0 {
		until = now.Add(-time.Minute).UnixMilli()
	}
	args := []any{from, until, rapid.SampledFrom(marks).Draw(r, "fence"), rapid.SampledFrom([]string{"one", "two"}).Draw(r, "instance")}
	args = append(args, rapid.SampledFrom([]int64{0, 0, 900}).Draw(r, "turn"))
	member := func() string { return rapid.SampledFrom([]string{"a", "b"}).Draw(r, "member") }
	checks := rapid.IntRange(0, 2).Draw(r, "checks")
	args = append(args, checks)
	for range checks {
		args = append(args, rapid.IntRange(1, 3).Draw(r, "key"), member(), rapid.SampledFrom([]string{"-", "=1"}).Draw(r, "value"))
	}
	write := func(command string, key int, values ...any) {
		args = append(append(args, command, key, len(values)), values...)
	}
	fence := rapid.SampledFrom(marks[1:]).Draw(r, "mark")
	write("HSET", 1, "n", fence)
	for range rapid.IntRange(0, 3).Draw(r, "writes") {
		key := rapid.IntRange(1, 3).Draw(r, "key")
		switch rapid.IntRange(0, 4).Draw(r, "command") {
		case 0:
			write("HSET", key, member(), "1", member(), "2")
		case 1:
			write("HDEL", key, member())
		case 2:
			write("DEL", key)
		case 3:
			write("PEXPIRE", key, 3_600_000)
		case 4:
			write("HSET", 1, "n", fence) // there is something to rename
			write("RENAME", 1, keys[1])
		}
	}
	return args
}

func mapOf(members []string) map[string]string {
	all := map[string]string{}
	for two := range slices.Chunk(members, 2) {
		all[two[0]] = two[1]
	}
	return all
}

// sorted are the members of a hash, of which Redis keeps no order.
func sorted(flat []any) []string {
	var all []string
	for two := range slices.Chunk(flat, 2) {
		all = append(all, strings.Join([]string{fmt.Sprint(two[0]), fmt.Sprint(two[1])}, "="))
	}
	slices.Sort(all)
	return all
}
