package redisstore

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// membersOf appends the reply of a command of ask to room: member, value, member, value, …
func membersOf(hash redis.Cmder, room []string) ([]string, error) {
	if raw, ok := hash.(*redis.RawCmd); ok {
		reply, err := raw.Result()
		if err != nil {
			return nil, err
		}
		return parseHash(room, string(reply))
	}
	members, err := hash.(*redis.MapStringStringCmd).Result()
	for member, value := range members {
		room = append(room, member, value)
	}
	return room, err
}

// errReply means that Redis replied with an error, or with something other than a hash.
var errReply = errors.New("redisstore: unexpected reply")

// isMissing reports whether Redis replied that there is no value. An error that only wraps
// redis.Nil is a failure: no sentinel knows the master.
func isMissing(err error) bool { return err == redis.Nil }

func isReply(err error) bool {
	_, refused := errors.AsType[redis.Error](err)
	return refused || errors.Is(err, errReply)
}

// parseHash parses the reply of HGETALL, a list in RESP2 and a map in RESP3, and appends it to
// room. The texts share the memory of reply.
func parseHash(room []string, reply string) ([]string, error) {
	n, rest, ok := cutLength(reply, '*')
	if pairs, after, isMap := cutLength(reply, '%'); isMap {
		n, rest, ok = 2*pairs, after, true
	}
	if !ok {
		return nil, fmt.Errorf("%w: %.40q", errReply, reply)
	}
	flat := slices.Grow(room, n)[:len(room)+n]
	for i := len(room); i < len(flat); i++ {
		size, text, ok := cutLength(rest, '$')
		if !ok || size > len(text)-len("\r\n") {
			return nil, fmt.Errorf("%w: %.40q", errReply, rest)
		}
		flat[i], rest = text[:size], text[size+len("\r\n"):]
	}
	return flat, nil
}

// cutLength cuts the first line off a reply: its kind and a length. A length that exceeds the
// reply is not valid.
func cutLength(reply string, kind byte) (n int, rest string, ok bool) {
	if reply == "" || reply[0] != kind {
		return 0, "", false
	}
	i := 1
	for ; i < len(reply) && '0' <= reply[i] && reply[i] <= '9' && n <= len(reply); i++ {
		n = 10*n + int(reply[i]-'0')
	}
	rest, ended := strings.CutPrefix(reply[i:], "\r\n")
	return n, rest, i > 1 && ended && n <= len(reply)
}

func texts(list []any) []string {
	flat := make([]string, len(list))
	for i := range list {
		flat[i], _ = list[i].(string)
	}
	return flat
}
