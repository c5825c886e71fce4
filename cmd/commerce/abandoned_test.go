package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth"
	"commerce/cart/redisstore"
	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

type atRest struct {
	carts  map[string]redisstore.Resting // by customer or digest
	totals redisstore.Guests
	lines  int
}

func parseAtRest(t *testing.T, out string) (a atRest) {
	t.Helper()
	a.carts = map[string]redisstore.Resting{}
	for line := range strings.Lines(out) {
		var l struct {
			redisstore.Resting
			Guests *redisstore.Guests
		}
		assert.NoError(t, json.Unmarshal([]byte(line), &l))
		if l.Guests != nil {
			a.totals = *l.Guests
			continue
		}
		a.lines++
		a.carts[l.Customer+l.CustomerDigest] = l.Resting
	}
	return a
}

func TestAbandoned_PrintsCartsThatTheServiceHasStored(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartRedis(t)
	serve := startServe(t, seeded(t), "REDIS_URL="+server.URL)
	serve.mustCall(t, "", "POST", "/cart/add", `{"product_id":1,"qty":3}`) // from here on, it knows the store and the product
	for _, customer := range []string{"1001", "sara@example.com", "emptied"} {
		token := strings.TrimSpace(ended(t, program(t, []string{"JWT_SECRET=" + secret}, "token", "customer", "--store=1", "--customer="+customer)).out)
		for _, call := range []string{"/cart/add", "/cart/clear"} {
			method, body := "POST", `{"product_id":1,"qty":2,"notice":"a gift"}`
			if call == "/cart/clear" {
				method, body = "DELETE", ""
			}
			if call == "/cart/add" || customer == "emptied" {
				a := serve.send(t, method, call, body, "Authorization", "Bearer "+token)
				assert.Require(t, a.Status == 200, "%s: %d %s", call, a.Status, a.Body)
			}
		}
	}
	time.Sleep(1100 * time.Millisecond)
	url := "REDIS_URL=" + ephemeral.AsUser(t, server.URL, string(assert.Must(os.ReadFile(root+"/deploy/redis/users.conf"))(t)), "support")
	list := func(flags ...string) outcome {
		got := ended(t, program(t, []string{url}, append([]string{"cart", "abandoned", "--store=1"}, flags...)...))
		assert.That(t, got.status == 0, "ended with %+v", got)
		return got
	}
	got := list("--idle=1s", "--within=1h")
	found := parseAtRest(t, got.out)
	digest := redisstore.NewOwner("sara@example.com").CustomerDigest
	assert.That(t, found.lines == 2 && digest != "", "printed %s", got.out)
	for _, owner := range []string{"1001", digest} {
		c := found.carts[owner]
		assert.Equal(t, c.Lines, []redisstore.RestingLine{{ItemID: "1", ProductID: 1, Quantity: 2, UnitPrice: 4950}}, "lines of %s", owner)
		assert.That(t, c.Value == 9900 && c.Version == 1 && time.Since(c.IdleSince) < time.Minute, "%s: %+v", owner, c)
	}
	assert.Equal(t, found.totals, redisstore.Guests{Carts: 1, Lines: 1, Value: 3 * 4950}, "guests")
	assert.That(t, !strings.Contains(got.out, "gift"), "texts of the shopper: %s", got.out)
	assert.Equal(t, list().out, `{"guests":{"carts":0,"lines":0,"value":0}}`+"\n", "none is idle for a day")
	got = list("--idle=1s", "--customer-cart-ttl=1h")
	assert.That(t, strings.HasPrefix(got.errors, "left out 2 carts that expire later than") && parseAtRest(t, got.out).lines == 0, "a TTL that is too short: %+v", got)
}

// fillAtRest stores 4,000 carts, idle for 0 to 9 hours, half of them of guests.
func fillAtRest(t *testing.T, url string, store int64) {
	t.Helper()
	rdb := assert.Must(connect.Redis(url, ephemeral.PatientRedis))(t)
	defer rdb.Close()
	now := time.Now()
	for from := range 40 {
		_, err := rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			for n := from * 100; n < from*100+100; n++ {
				ref, ttl := redisstore.CustomerRef(store, fmt.Sprint(n)), 2160*time.Hour
				if n%2 == 1 {
					ref, ttl = redisstore.GuestRef(store, auth.CartToken(fmt.Sprintf("%022d", n))), 720*time.Hour
				}
				expires := now.Add(ttl - time.Duration(n/2%10)*time.Hour)
				key := "cart:{" + ref.String() + "}"
				p.HSet(t.Context(), key, "i", "ID", "v", "3.mark", "l", "3", "x", expires.Unix(), "1", "2 1 100", "2.p7", "1 2 50")
				p.ExpireAt(t.Context(), key, expires)
				p.HSet(t.Context(), key+":keys", "k", "v") // of another kind
				p.ExpireAt(t.Context(), key+":keys", expires)
			}
			return nil
		})
		assert.NoError(t, err)
	}
}

// A walk that is interrupted and resumed prints each cart.
func TestAbandoned_GoesOnWhereItWasInterrupted(t *testing.T) {
	slow(t)
	for name, url := range map[string]string{
		"single": ephemeral.StartRedis(t).URL, "cluster": ephemeral.StartCluster(t).URL, "sentinels": ephemeral.StartSentinels(t).URL,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fillAtRest(t, url, 5)
			args := []string{"cart", "abandoned", "--store=5", "--idle=2h", "--within=330m"} // 2, 3, 4 and 5 of 10
			var printed strings.Builder
			resume := regexp.MustCompile(`--resume=\S+`)
			for interruptions, flags := 0, []string(nil); ; interruptions++ {
				cmd := program(t, []string{"REDIS_URL=" + url}, append(slices.Clone(args), flags...)...)
				var errs bytes.Buffer
				cmd.Stderr = &errs
				lines := bufio.NewReader(assert.Must(cmd.StdoutPipe())(t))
				assert.NoError(t, cmd.Start())
				for n := 0; ; n++ {
					line, err := lines.ReadString('\n')
					printed.WriteString(line)
					if n == 50 && interruptions < 3 {
						assert.NoError(t, cmd.Process.Signal(syscall.SIGINT))
					}
					if err != nil {
						break
					}
				}
				_ = cmd.Wait()
				if cmd.ProcessState.ExitCode() == 0 {
					assert.That(t, interruptions > 0, "it was never interrupted")
					break
				}
				assert.Require(t, strings.Contains(errs.String(), "interrupted: to continue, repeat the command with --resume="), "said %q", errs.String())
				flags = []string{resume.FindString(errs.String())}
			}
			found := parseAtRest(t, printed.String())
			assert.Equal(t, len(found.carts), 800, "customers' carts")
			assert.Equal(t, found.lines, 800, "lines, while no cart is added")
			assert.Equal(t, found.totals, redisstore.Guests{Carts: 800, Lines: 1600, Value: 800 * 250}, "guests")
			other := ended(t, program(t, []string{"REDIS_URL=" + url}, "cart", "abandoned", "--store=6", "--idle=0s"))
			assert.Equal(t, other.out, `{"guests":{"carts":0,"lines":0,"value":0}}`+"\n", "another store's")
		})
	}
}

func TestAbandoned_RefusesToResumeOnAnotherServer(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartRedis(t)
	run := func(flags ...string) outcome {
		return ended(t, program(t, []string{"REDIS_URL=" + server.URL}, append([]string{"cart", "abandoned", "--store=1"}, flags...)...))
	}
	const resume = "--resume=00000000.1.00000001.0.5.0.0.0.0"
	other := run(resume)
	assert.That(t, other.status == 2 && strings.Contains(other.errors, "--resume: is of a walk with other flags"), "other flags: %+v", other)
	own := fmt.Sprintf("--resume=%08x", func() uint32 {
		c := &abandonedCommand{Store: 1, Idle: 24 * time.Hour, Within: 168 * time.Hour, TTL: redisstore.TTLs{Guest: 720 * time.Hour, Customer: 2160 * time.Hour}}
		c.faults()
		return c.flags
	}())
	got := run(strings.Replace(resume, "--resume=00000000", own, 1))
	assert.That(t, got.status == 2 && got.out == "" && strings.Contains(got.errors, "--resume: a Redis master was restarted or replaced"), "another server: %+v", got)
}

func TestDigest_NamesCustomersAsAbandonedDoes(t *testing.T) {
	t.Parallel()
	for ids, want := range map[string]outcome{
		"1001\nsara@example.com\r\n":                 {0, `{"customer":"1001"}` + "\n" + `{"customer":"sara@example.com","customer_digest":"JZtlgzu639WO5m3eKQSJpg"}` + "\n", ""},
		"1001\n\n1002\n":                             {1, `{"customer":"1001"}` + "\n", "commerce: line 2: a customer's id must be 1 to 255 characters of UTF-8\n"},
		"1001\n" + strings.Repeat("x", 1<<17) + "\n": {1, `{"customer":"1001"}` + "\n", "commerce: line 2: a customer's id must be 1 to 255 characters of UTF-8\n"},
		"": {},
	} {
		cmd := program(t, nil, "cart", "digest")
		cmd.Stdin = strings.NewReader(ids)
		got := ended(t, cmd)
		assert.That(t, got == want, "of %q: %+v, want %+v", ids, got, want)
	}
}
