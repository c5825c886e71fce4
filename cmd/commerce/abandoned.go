package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"time"

	"commerce/cart/redisstore"
	"commerce/cmd/internal/cli"
	"commerce/deploy/connect"
)

type abandonedCommand struct {
	RedisURL     string
	TTL          redisstore.TTLs
	Store        int64
	Idle, Within time.Duration
	Resume       string
	restWalk
}

// restWalk is how far a walk has got. --resume has it as text.
type restWalk struct {
	flags   uint32 // digest of the flags that say which carts are at rest
	began   int64  // in seconds by Redis' clock
	masters uint32 // redisstore.Masters.ID
	master  int    // the current one
	cursor  uint64
	visited int64 // keys, roughly
	guests  redisstore.Guests
}

const resumeForm = "%08x.%d.%08x.%d.%d.%d.%d.%d.%d"

func (w *restWalk) String() string {
	return fmt.Sprintf(resumeForm, w.flags, w.began, w.masters, w.master, w.cursor, w.visited, w.guests.Carts, w.guests.Lines, w.guests.Value)
}

func (w *restWalk) parse(text string) error {
	_, err := fmt.Sscanf(text, resumeForm, &w.flags, &w.began, &w.masters, &w.master, &w.cursor, &w.visited, &w.guests.Carts, &w.guests.Lines, &w.guests.Value)
	if err != nil || w.String() != text {
		return errors.New("is not a text that an interrupted walk has printed")
	}
	return nil
}

func newAbandoned() cli.Command {
	c := &abandonedCommand{}
	return cli.Command{
		Name: "abandoned", Help: "List the carts of a store that nobody has used for a while, as NDJSON.",
		Details: `A line is a customer's cart. The last line has the number of guests' carts, of
their lines, and their value. Amounts are in minor units, at the prices when the
lines were added. It takes at most 5 % of one core from Redis.`,
		Settings: append([]cli.Setting{
			redisSetting(&c.RedisURL, "Redis URL, as for serve. Use the Redis user support from deploy/redis/users.conf."),
			storeFlag(&c.Store),
			{Name: "idle", Default: "24h", Help: "Minimum time since the cart's last use.", Value: cli.Duration(&c.Idle, 0, 0)},
			{Name: "within", Default: "7d", Help: "Maximum time since the cart's last use.", Value: cli.Duration(&c.Within, 0, 0)},
			{Name: "resume", Hint: "TEXT", Help: "Continue an interrupted walk: the text that it has printed.", Value: cli.Text(&c.Resume, nil)},
		}, ttlSettings(&c.TTL)...),
		Faults: c.faults, Run: c.run,
	}
}

func (c *abandonedCommand) faults() (f cli.Faults) {
	if c.Within <= c.Idle {
		f.Add("--within", fmt.Errorf("must be longer than --idle, which is %s", c.Idle))
	}
	flags := crc32.ChecksumIEEE(fmt.Append(nil, c.Store, c.Idle, c.Within, c.TTL))
	if c.Resume != "" {
		f.Add("--resume", c.parse(c.Resume))
		if c.flags != flags {
			f.Add("--resume", errors.New("is of a walk with other flags or cart TTLs"))
		}
	}
	c.flags = flags
	return f
}

func (c *abandonedCommand) run(ctx context.Context, out cli.Output) error {
	rdb, err := connect.Redis(c.RedisURL)
	if err != nil {
		return &cli.BadSetting{Name: "REDIS_URL", Err: err}
	}
	defer rdb.Close()
	carts := redisstore.New(redisstore.Config{Client: rdb, TTL: c.TTL})
	masters, err := carts.Masters(ctx)
	switch {
	case err != nil:
		return err
	case c.Resume == "":
		c.masters, c.began = masters.ID, masters.Now.Unix()
	case c.masters != masters.ID:
		return &cli.BadSetting{Name: "--resume", Err: errMasters}
	}
	if err = c.walk(ctx, out, carts, masters); err != nil {
		if errors.Is(err, errMasters) {
			return err
		}
		if ctx.Err() != nil {
			err = errors.New("interrupted")
		}
		return fmt.Errorf("%w: to continue, repeat the command with --resume=%s", err, &c.restWalk)
	}
	return c.guests.PrintTotals(out)
}

var errMasters = errors.New("a Redis master was restarted or replaced, or slots have moved, since the walk began, so it could miss carts: start again, without --resume")

const (
	// restPause is how long a walk sleeps, as a multiple of the time that Redis needed: it uses
	// at most 5 % of one core. Longer than maxRestPause, that was the network or this machine: a step of
	// the largest carts takes Redis less than 50 ms.
	restPause    = 19
	maxRestPause = time.Second
	// restReport is how often a walk that no terminal shows prints how far it is.
	restReport = 10 * time.Second
)

func (c *abandonedCommand) walk(ctx context.Context, out cli.Output, carts *redisstore.Store, masters redisstore.Masters) error {
	shown := out.Errors
	if !isPlain(out.Writer) {
		shown = io.Discard // the lines themselves show that it works
	}
	bar := startProgress(shown, "visiting keys", int(masters.Keys))
	defer bar.end()
	rest := redisstore.Rest{Store: c.Store, Now: time.Unix(c.began, 0), Idle: c.Idle, Within: c.Within}
	var unreadable, newer int
	for reported := time.Now(); c.master < len(masters.Clients); {
		asked := time.Now()
		batch, err := carts.AtRest(ctx, masters.Clients[c.master], rest, c.cursor)
		took := time.Since(asked)
		if err = cmp.Or(err, c.guests.Print(out, batch.Carts)); err != nil {
			return err
		}
		unreadable, newer = unreadable+batch.Unreadable, newer+batch.Newer
		if c.cursor = batch.Next; c.cursor == 0 {
			c.master++
		}
		c.visited = min(c.visited+redisstore.RestStep, masters.Keys)
		_ = bar.Set64(c.visited)
		if time.Since(reported) >= restReport || c.master == len(masters.Clients) {
			reported = time.Now()
			if now, err := carts.Masters(ctx); err != nil || now.ID != masters.ID {
				return cmp.Or(err, errMasters)
			}
			if c.master < len(masters.Clients) && isPlain(out.Errors) {
				fmt.Fprintf(out.Errors, "visited about %d of %d keys; to continue from here, add --resume=%s\n", c.visited, masters.Keys, &c.restWalk)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(restPause*took, maxRestPause)):
		}
	}
	if unreadable > 0 {
		fmt.Fprintf(out.Errors, "left out %d carts that this release cannot read\n", unreadable)
	}
	if newer > 0 {
		fmt.Fprintf(out.Errors, "left out %d carts that expire later than GUEST_CART_TTL and CUSTOMER_CART_TTL allow: set both as for serve\n", newer)
	}
	return nil
}

func newDigest() cli.Command {
	return cli.Command{
		Name: "digest", Help: "Read customers' ids, one a line, and print each, with its digest if abandoned shows that instead, as NDJSON.",
		Run: func(ctx context.Context, out cli.Output) error {
			done := make(chan error, 1)
			go func() { done <- printDigests(os.Stdin, out) }()
			select {
			case err := <-done:
				return err
			case <-ctx.Done(): // a read of a terminal cannot be interrupted
				return ctx.Err()
			}
		},
	}
}

func printDigests(ids io.Reader, out io.Writer) error {
	lines, printed := bufio.NewScanner(ids), bufio.NewWriter(out)
	for n := 1; lines.Scan() || errors.Is(lines.Err(), bufio.ErrTooLong); n++ {
		id := lines.Text()
		if err := checkLength(id); err != nil || id == "" || lines.Err() != nil {
			return errors.Join(printed.Flush(), fmt.Errorf("line %d: a customer's id must be 1 to 255 characters of UTF-8", n))
		}
		if err := json.NewEncoder(printed).Encode(redisstore.NewOwner(id)); err != nil {
			return err
		}
	}
	return cmp.Or(printed.Flush(), lines.Err())
}
