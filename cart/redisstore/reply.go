package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// hashRead is an HGETALL.
type hashRead struct{ cmd redis.Cmder }

// cheapHash reads a hash with one allocation for all its members: go-redis' own types
// allocate each member, and a map. go-redis does not look into the reply, so it follows no
// redirection and repeats nothing.
func cheapHash(ctx context.Context, key string) hashRead {
	return hashRead{redis.NewRawCmd(ctx, "hgetall", key)}
}

// plainHash reads a hash like any other command of go-redis.
func plainHash(ctx context.Context, key string) hashRead {
	return hashRead{redis.NewMapStringStringCmd(ctx, "hgetall", key)}
}

// flat returns the reply: member, value, member, value, …
func (r hashRead) flat() ([]string, error) {
	if raw, ok := r.cmd.(*redis.RawCmd); ok {
		reply, err := raw.Result()
		if err != nil {
			return nil, err
		}
		return parseHash(string(reply))
	}
	hash, err := r.cmd.(*redis.MapStringStringCmd).Result()
	flat := make([]string, 0, 2*len(hash))
	for member, value := range hash {
		flat = append(flat, member, value)
	}
	return flat, err
}

// errReply means that Redis replied with an error, or with something other than a hash.
var errReply = errors.New("redisstore: unexpected reply")

// refusal returns the error that Redis replied with; nil if it replied with a value.
func refusal(raw *redis.RawCmd) error {
	if reply := raw.Val(); len(reply) == 0 || reply[0] == '-' || reply[0] == '!' {
		return fmt.Errorf("%w: %.100q", errReply, reply)
	}
	return nil
}

// isMissing reports whether Redis replied that there is no value. An error that only wraps
// redis.Nil is a failure: go-redis returns one if no sentinel knows the master.
func isMissing(err error) bool { return err == redis.Nil }

// isReply reports whether an error is what Redis replied.
func isReply(err error) bool {
	_, refused := errors.AsType[redis.Error](err)
	return refused || errors.Is(err, errReply)
}

// parseHash parses the reply of HGETALL: a list in RESP2, a map in RESP3. The result
// shares the memory of reply.
func parseHash(reply string) ([]string, error) {
	head, rest, _ := strings.Cut(reply, "\r\n")
	n, ok := parseLength(head, '*')
	if pairs, isMap := parseLength(head, '%'); isMap {
		n, ok = 2*pairs, true
	}
	if !ok || n < 0 || n > len(reply) {
		return nil, fmt.Errorf("%w: %.40q", errReply, head)
	}
	flat := make([]string, n)
	for i := range flat {
		head, rest, _ = strings.Cut(rest, "\r\n")
		size, ok := parseLength(head, '$')
		if !ok || size > len(rest)-len("\r\n") {
			return nil, fmt.Errorf("%w: %.40q", errReply, head)
		}
		flat[i], rest = rest[:size], rest[size+len("\r\n"):]
	}
	return flat, nil
}

// parseLength parses the first line of a reply: its type and its length.
func parseLength(line string, kind byte) (n int, ok bool) {
	if line == "" || line[0] != kind {
		return 0, false
	}
	n, err := strconv.Atoi(line[1:])
	return n, err == nil && n >= 0
}

// texts converts a list in a script's reply.
func texts(list []any) []string {
	flat := make([]string, len(list))
	for i := range list {
		flat[i], _ = list[i].(string)
	}
	return flat
}
