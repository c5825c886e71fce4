package redisstore_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"commerce/auth"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/redisstore"
	"commerce/deploy/ephemeral"
)

// meter is a Redis server of its own with two carts, which every run of a script finds
// as they were filled.
type meter struct {
	store           *redisstore.Store
	client          redis.UniversalClient
	customer, guest redisstore.Ref
	lines           int
}

func newMeter(b *testing.B, lines int) *meter {
	b.Helper()
	client := dial(b, ephemeral.StartRedis(b).URL)
	m := &meter{
		client:   client,
		lines:    lines,
		store:    redisstore.New(redisstore.Config{Client: client, TTL: usualTTLs}),
		customer: redisstore.CustomerRef(1, "1001"),
		guest:    redisstore.GuestRef(1, auth.CartToken(strings.Repeat("t", 22))),
	}
	if _, err := redisstore.LoadScripts(b.Context(), client, redisstore.Variant{}); err != nil {
		b.Fatal(err)
	}
	for _, ref := range []redisstore.Ref{m.customer, m.guest} {
		for i := range lines {
			m.change(b, ref, redisstore.Conditions{}, redisstore.Add(lineOf(9001+i), carttest.Limits))
		}
		m.save(b, ref.CartKey())
	}
	return m
}

func lineOf(product int) cart.NewLine {
	return cart.NewLine{
		ID: cart.NewLineID(int64(product), 0, nil), Quantity: 1, Price: 1000,
		Bounds: cart.Bounds{Stock: -1, Min: 1, Max: 999},
	}
}

func (m *meter) change(b *testing.B, ref redisstore.Ref, on redisstore.Conditions, c redisstore.Change) {
	o, err := m.store.Change(b.Context(), ref, on, redisstore.Attempt{CartID: "ABCDEFGHIJKLMNOPQRST"}, c)
	if err != nil || o.Status != redisstore.Applied {
		b.Fatalf("%s: %v", o.Status, err)
	}
}

// save makes restore bring a key back as it is now.
func (m *meter) save(b *testing.B, key string) {
	if err := m.client.Copy(b.Context(), key, key+":saved", 0, true).Err(); err != nil {
		b.Fatal(err)
	}
}

// restore brings keys back. A key that was never saved is deleted.
func (m *meter) restore(b *testing.B, keys ...string) {
	_, err := m.client.Pipelined(b.Context(), func(p redis.Pipeliner) error {
		for _, key := range keys {
			p.Del(b.Context(), key)
			p.Copy(b.Context(), key+":saved", key, 0, true)
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// measure runs a call of the store with the keys as they were saved. It reports the CPU
// time that Redis spent on the call's script or, without one, on HGETALL.
func (m *meter) measure(b *testing.B, name string, call func(context.Context) error, keys ...string) {
	b.Run(fmt.Sprintf("%s/%d lines", name, m.lines), func(b *testing.B) {
		ctx := b.Context()
		if err := m.client.ConfigResetStat(ctx).Err(); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			m.restore(b, keys...)
			if err := call(ctx); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(0, "ns/op") // mostly the time of the connection
		b.ReportMetric(m.microseconds(b), "redis-µs/op")
	})
}

var commandStat = regexp.MustCompile(`cmdstat_(\w+):calls=(\d+),usec=(\d+)`)

func (m *meter) microseconds(b *testing.B) float64 {
	used := map[string]float64{} // per call
	for _, stat := range commandStat.FindAllStringSubmatch(m.client.Info(b.Context(), "commandstats").Val(), -1) {
		calls, _ := strconv.ParseFloat(stat[2], 64)
		usec, _ := strconv.ParseFloat(stat[3], 64)
		used[stat[1]] = usec / calls
	}
	for _, command := range []string{"evalsha", "hgetall"} {
		if each, ran := used[command]; ran {
			return each
		}
	}
	b.Fatalf("no script ran: %v", used)
	return 0
}

func BenchmarkScripts(b *testing.B) {
	for _, lines := range []int{5, 50} {
		m := newMeter(b, lines)
		m.measure(b, "read", func(ctx context.Context) error {
			_, err := m.store.Load(ctx, m.customer)
			return err
		}, m.customer.CartKey())
		m.benchmarkChanges(b)
	}
	newMeter(b, 5).benchmarkMerge(b)
}

func (m *meter) benchmarkChanges(b *testing.B) {
	quantity, bounds := int64(3), cart.Bounds{Stock: -1, Min: 1, Max: 999}
	edited := cart.EditedLine{From: cart.Line{ID: "9001"}, ID: "9001", Quantity: &quantity, Notice: "a gift", Bounds: bounds}
	for _, c := range []struct {
		name   string
		on     redisstore.Conditions
		change redisstore.Change
	}{
		{"add", redisstore.Conditions{}, redisstore.Add(lineOf(9001), carttest.Limits)},
		{"add, stamp", redisstore.Conditions{Stamp: "stmp01"}, redisstore.Add(lineOf(9001), carttest.Limits)},
		{"add, key", redisstore.Conditions{Key: "key", Fingerprint: "fingerprint"}, redisstore.Add(lineOf(9001), carttest.Limits)},
		{"add a line", redisstore.Conditions{}, redisstore.Add(lineOf(8001), carttest.Limits)},
		{"set", redisstore.Conditions{}, redisstore.SetQuantity("9001", quantity, bounds, "")},
		{"edit", redisstore.Conditions{}, redisstore.Edit("9001", edited, carttest.Limits)},
		{"remove", redisstore.Conditions{}, redisstore.Remove("9001")},
		{"clear", redisstore.Conditions{}, redisstore.Clear()},
		{"coupon", redisstore.Conditions{}, redisstore.SetCoupon("TEN")},
		{"check", redisstore.Conditions{}, redisstore.CheckOnly()},
	} {
		m.measure(b, c.name, func(ctx context.Context) error {
			_, err := m.store.Change(ctx, m.customer, c.on, redisstore.Attempt{}, c.change)
			return err
		}, m.customer.CartKey(), m.customer.KeysKey())
	}
}

// benchmarkMerge measures the steps of a merge of two carts with the same lines.
func (m *meter) benchmarkMerge(b *testing.B) {
	const note = "mNOTE"
	customer, guest, claimed := m.customer.CartKey(), m.guest.CartKey(), m.guest.ClaimedKey()
	held, err := m.store.Load(b.Context(), m.guest)
	if err != nil {
		b.Fatal(err)
	}
	brings := held.Brings()
	reserve := func(ctx context.Context) error {
		return m.store.Reserve(ctx, m.customer, m.guest, note, brings, carttest.Limits)
	}
	m.measure(b, "reserve", reserve, customer)
	m.measure(b, "claim", func(ctx context.Context) error {
		_, err := m.store.Claim(ctx, m.customer, m.guest, note, brings)
		return err
	}, guest, claimed)

	// The carts as they are after reserve and claim.
	m.restore(b, guest, claimed)
	if err := reserve(b.Context()); err != nil {
		b.Fatal(err)
	}
	c, err := m.store.Claim(b.Context(), m.customer, m.guest, note, brings)
	if err != nil {
		b.Fatal(err)
	}
	m.save(b, customer)
	m.save(b, claimed)
	products := map[int64]*cart.Product{}
	for _, id := range c.Cart.ProductIDs() {
		products[id] = carttest.Sold(id, 1000)
	}
	bounds := cart.MergeBounds(c.Cart, products, carttest.Limits)
	m.measure(b, "apply", func(ctx context.Context) error {
		_, err := m.store.Apply(ctx, m.customer, c, cart.Sum, bounds, "unused")
		return err
	}, customer, m.customer.OfferedKey(c.Cart.ID))
	m.measure(b, "finish", func(ctx context.Context) error { return m.store.Finish(ctx, m.customer, m.guest, c) }, claimed)
	m.measure(b, "forget", func(ctx context.Context) error { return m.store.Forget(ctx, m.customer, note) }, customer)
}

// BenchmarkLoad measures a read of a cart with its parsing. Most of the time is that of
// the connection.
func BenchmarkLoad(b *testing.B) {
	for _, lines := range []int{5, 50} {
		m := newMeter(b, lines)
		b.Run(fmt.Sprintf("%d lines", lines), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if held, err := m.store.Load(b.Context(), m.customer); err != nil || len(held.Lines) != lines {
					b.Fatal(len(held.Lines), err)
				}
			}
		})
	}
}
