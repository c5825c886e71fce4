package redisstore

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"commerce/cart"
	"commerce/cart/money"
	"commerce/cart/redisstore/layout"
	"commerce/deploy/assert"
)

// encoding is one cart that commits change, in a miniredis whose clock the test sets.
type encoding struct {
	*Store
	server *miniredis.Miniredis
	ref    Ref
	now    time.Time
}

const encodedTTL = 720 * time.Hour

// Each commit makes of the stored cart what encode has returned, whatever the carts before and after it are.
func TestEncode_WritesTheCartThatItReturns(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { client.Close() })
	e := encoding{New(Config{Client: client}), server, CustomerRef(1, "c"), time.Time{}}
	rapid.Check(t, func(t *rapid.T) {
		server.FlushAll()
		e.now = time.UnixMilli(1_800_000_000_123)
		e.pass(0)
		for range rapid.IntRange(1, 5).Draw(t, "changes") {
			e.pass(time.Duration(rapid.SampledFrom([]int64{0, 1, 1500, 3_600_001, 90_000_000}).Draw(t, "ms")) * time.Millisecond)
			held := e.read(t) // an emptied cart may have expired
			want, left := e.change(t, &held, drawCell(t, &held.Cell, e.now))
			if held = e.read(t); len(held.Lines) != len(held.Orders) {
				t.Fatalf("%d lines have %d orders", len(held.Lines), len(held.Orders))
			}
			if diff := gocmp.Diff(want, held, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("-returned +stored\n%s", diff)
			}
			e.wantOrders(t, held.Orders)
			e.wantLeft(t, held.Expires, left)
			e.laysWhatScriptsWrite(t)
		}
	})
}

func (e *encoding) pass(d time.Duration) {
	e.now = e.now.Add(d)
	e.server.SetTime(e.now)
	e.server.FastForward(d)
}

// change commits what makes the held cart the cell after.
func (e *encoding) change(t *rapid.T, held *layout.Hash, after cart.Cell) (layout.Hash, time.Duration) {
	ms := e.now.UnixMilli()
	c := &commit{keys: []string{e.ref.CartKey()}, time: ms, until: ms, fence: held.Fence, mark: anyMark()}
	want, left := c.encode(held, after, encodedTTL, e.now)
	at, err := e.masterOf(t.Context(), e.ref.CartKey())
	if err != nil {
		t.Fatal(err)
	}
	reply, _, err := e.send(t.Context(), at, c, 0, 0)
	if err != nil || reply.word != "applied" {
		t.Fatal(reply, err)
	}
	return want, left
}

func (e *encoding) read(t *rapid.T) layout.Hash {
	members, err := e.Client.HGetAll(t.Context(), e.ref.CartKey()).Result()
	if err != nil {
		t.Fatal(err)
	}
	var flat []string
	for member, value := range members {
		flat = append(flat, member, value)
	}
	held, err := layout.Parse(flat)
	if err != nil {
		t.Fatal(err)
	}
	return held
}

func (e *encoding) wantOrders(t *rapid.T, orders []int64) {
	for i, order := range orders {
		if order < 1 || i > 0 && order <= orders[i-1] {
			t.Fatalf("the lines have the orders %v", orders)
		}
	}
}

// wantLeft fails unless the cart is kept as long as encode has said, and as it says itself, in whole seconds.
func (e *encoding) wantLeft(t *rapid.T, expires int64, left time.Duration) {
	kept := e.server.TTL(e.ref.CartKey())
	if off := kept - time.Unix(expires, 0).Sub(e.now); off < 0 || off >= time.Second {
		t.Fatalf("it is kept for %v, and is to expire in %v", kept, kept-off)
	}
	if off := kept - left; off < 0 || off >= time.Second {
		t.Fatalf("it is kept for %v, encode has said %v", kept, left)
	}
}

// laysWhatScriptsWrite adds what only merges, undos and listeners write.
func (e *encoding) laysWhatScriptsWrite(t *rapid.T) {
	ms := e.now.UnixMilli()
	others := []any{
		"g", fmt.Sprintf("%d mABC 2 1.p1 7 5 above_max_quantity", ms),
		"w", fmt.Sprintf("%d publish", e.now.Unix()+30),
		"u", "1:c:2",
		"mABC", fmt.Sprintf("GUEST %d 1 0 CART", e.now.Unix()),
		"z", "of a later release",
	}
	for ; len(others) > 0; others = others[2:] {
		if rapid.IntRange(0, 2).Draw(t, "a member of others") > 0 {
			continue
		}
		if err := e.Client.HSet(t.Context(), e.ref.CartKey(), others[:2]...).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// drawCell draws what a decision may make of a cell.
func drawCell(t *rapid.T, before *cart.Cell, now time.Time) cart.Cell {
	after := *before
	after.ID = cmp.Or(before.ID, "CART")
	after.Version, after.Mark = before.Version+rapid.Int64Range(0, 1).Draw(t, "version"), rapid.SampledFrom([]string{"AAA", "BBB"}).Draw(t, "mark")
	after.Version = max(after.Version, 1)
	after.Lines = drawLines(t, before.Lines)
	after.Coupons = rapid.SampledFrom([][]string{nil, {"TEN"}, {"C1", "C2", "C3"}, before.Coupons}).Draw(t, "codes")
	after.Buyer = rapid.SampledFrom([]cart.Buyer{{}, {Country: "DE", Source: cart.ByAgent}, before.Buyer}).Draw(t, "buyer")
	after.Metadata = drawTexts(t, before.Metadata)
	after.Agent = rapid.SampledFrom([]string{"", cart.AgentCanceled, after.Moment() + "|" + after.Moment(), before.Agent}).Draw(t, "agent")
	for range rapid.IntRange(0, 9).Draw(t, "stamps") {
		stamp := fmt.Sprint("stmp", rapid.IntRange(10, 40).Draw(t, "stamp"))
		after.Stamps = after.Stamps.With(stamp, rapid.SampledFrom([]cart.LineID{"", "1", "1.p1"}).Draw(t, "its line"), now)
	}
	if rapid.Bool().Draw(t, "removed lines change") {
		after.Removed = nil
		for _, id := range encodedLines[:rapid.IntRange(0, 3).Draw(t, "removed lines")] {
			after.Removed = append(after.Removed, cart.RemovedLine{ID: id.ID, At: now.Unix()})
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "forgets") == 0 {
		after.Report, after.Listened = nil, cart.Listening{}
	}
	return after
}

// encodedLines are the lines that there may be; the ID of one with fields stands for these.
var encodedLines = func() []cart.Line {
	fields := func(value string) []cart.FieldValue { return []cart.FieldValue{{Name: "a", Value: value}} }
	all := []cart.Line{{ID: "1"}, {ID: "1.p1"}, {ID: "2"}, {ID: "12"}, {ID: "3"}}
	for _, value := range []string{"x", `"é\ `, `","`} {
		all = append(all, cart.Line{ID: cart.NewLineID(2, 0, fields(value)), Fields: fields(value)})
	}
	return all
}()

// drawLines draws lines in any order, of which some are as before.
func drawLines(t *rapid.T, before []cart.Line) []cart.Line {
	if rapid.IntRange(0, 4).Draw(t, "lines stay") == 0 {
		return before
	}
	all := slices.Clone(encodedLines)
	if rapid.Bool().Draw(t, "in the order before") { // and any others anywhere
		for i, line := range before {
			at := slices.IndexFunc(all, func(l cart.Line) bool { return l.ID == line.ID })
			all = slices.Insert(slices.Delete(all, at, at+1), i, line)
		}
	}
	if rapid.Bool().Draw(t, "in another order") {
		all = rapid.Permutation(all).Draw(t, "lines")
	}
	from := rapid.IntRange(0, len(all)).Draw(t, "from")
	all = all[from : from+rapid.IntRange(0, len(all)-from).Draw(t, "number of lines")]
	for i := range all {
		was := slices.IndexFunc(before, func(l cart.Line) bool { return l.ID == all[i].ID })
		if was >= 0 {
			all[i] = before[was]
		}
		if was < 0 || rapid.Bool().Draw(t, "is edited") {
			all[i].Quantity = rapid.Int64Range(1, 3).Draw(t, "quantity")
			all[i].AddedPrice = money.Amount(rapid.Int64Range(0, 2).Draw(t, "price"))
			all[i].Notice = rapid.SampledFrom([]string{"", "n", "né \n"}).Draw(t, "notice")
			all[i].Metadata = drawTexts(t, all[i].Metadata)
		}
	}
	return all
}

func drawTexts(t *rapid.T, before cart.Metadata) cart.Metadata {
	return rapid.SampledFrom([]cart.Metadata{nil, before, {"a": "x"}, {"a": "x", "é.b": `"<\`}}).Draw(t, "metadata")
}

// A change writes only the members that it changes, beside the fence.
func TestEncode_WritesOnlyWhatChanges(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_800_000_000_000)
	marks := strings.Repeat(newFenceMark(rand.Reader, now.UnixMilli()), maxMarks)
	before := layout.Hash{Number: layout.Number, Fence: marks, Orders: []int64{1, 2}}
	before.ID, before.Version, before.Mark, before.Coupons, before.Expires = "C", 1, "M", []string{"TEN"}, now.Add(encodedTTL).Unix()
	before.Lines = []cart.Line{{ID: "1", Quantity: 1, Notice: "n"}, {ID: "2", Quantity: 1, Metadata: cart.Metadata{"a": "b"}}}
	after := before.Cell
	after.Version, after.Mark, after.Coupons = 2, "N", nil
	after.Lines = slices.Clone(after.Lines)
	after.Lines[1].Quantity = 5
	c := &commit{keys: []string{"key"}, time: now.UnixMilli(), fence: before.Fence, mark: anyMark()}
	fence := marks[markSize:] + c.mark
	stored, left := c.encode(&before, after, encodedTTL, now)
	assert.Equal(t, c.writes, []any{
		"HDEL", 1, 1, "c",
		"HSET", 1, 6, "n", fence, "v", "2.N", "2", "5 2 0",
	}, "the writes")
	assert.That(t, stored.Fence == fence && left == encodedTTL, "stored %+v for %v", stored, left)
}

// Nothing that a fence tells of a commit is wrong, also with arbitrary marks and after a failover to a server whose clock
// differs. Without these, it tells all within a second, unless there are many commits.
func TestCommit_IsKnownByTheFenceOfALaterCart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		fence, now := "", int64(1_800_000_000_000)
		next := func(most int64) *commit {
			now += rapid.Int64Range(0, most).Draw(t, "ms")
			return &commit{time: now, fence: fence, mark: newFenceMark(rand.Reader, now)}
		}
		usual := rapid.Bool().Draw(t, "usual")
		later := func(most int64) {
			c := next(most)
			if !usual && rapid.Bool().Draw(t, "an arbitrary mark") {
				fence = cmp.Or(fence, firstMark)
				fence = fence[max(0, len(fence)-(maxMarks-1)*markSize):] + anyMark()
				return
			}
			if !usual {
				c.time -= rapid.Int64Range(-3000, 3000).Draw(t, "clock")
				c.mark = newFenceMark(rand.Reader, c.time)
			}
			fence = c.nextFence()
		}
		for range rapid.IntRange(0, 2*maxMarks).Draw(t, "commits before") {
			later(5000)
		}
		lost, made := next(5000), rapid.Bool().Draw(t, "made")
		if made {
			fence = lost.nextFence()
		}
		after := rapid.IntRange(0, 2*maxMarks).Draw(t, "commits after")
		for range after {
			later(200)
		}
		now += rapid.Int64Range(0, 2000).Draw(t, "ms until the read")
		if len(fence) > maxMarks*markSize {
			t.Fatalf("a fence has %d characters", len(fence))
		}
		saysMade, saysNot := lost.wasMade(fence), lost.wasNotMade(fence)
		if saysMade && !made || saysNot && made {
			t.Fatalf("made %v: wasMade says %v, wasNotMade %v", made, saysMade, saysNot)
		}
		soon, few := now-lost.time < 1000, len(fence) < maxMarks*markSize
		if usual && soon && few && saysMade == saysNot {
			t.Fatalf("made %v, %d later within %d ms: nothing is known", made, after, now-lost.time)
		}
	})
}

// Lua's unpack passes about 8,000 arguments at most.
func TestCommit_SplitsWritesThatAreTooLongForLua(t *testing.T) {
	t.Parallel()
	c := &commit{keys: []string{"key"}}
	args := make([]any, 2*maxArgs+2)
	for i := range args {
		args[i] = strconv.Itoa(i)
	}
	c.write("HSET", "key", args...)
	c.write("HDEL", "key")
	var sent []any
	for w := c.writes; len(w) > 0; {
		n := w[2].(int)
		assert.Require(t, n <= maxArgs && n%2 == 0, "a command has %d arguments", n)
		sent, w = append(sent, w[3:3+n]...), w[3+n:]
	}
	assert.Equal(t, sent, args, "what is sent")
}
