package torture

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

type limitsOfCart struct {
	lines, text int
	settings    []string
}

// tallProduct has a field, so that a cart can have many lines of it, and limits that all of
// its lines share, so that a change must add them up.
const tallProduct = 3001

const scriptLimit = 5 * time.Millisecond

// largest is a guest and a customer with the largest carts that the limits allow.
type largest struct {
	t                     *testing.T
	redis                 *redis.Client
	limits                limitsOfCart
	guest, customer, both *shopper

	took map[string][]time.Duration // of commits, by the kind of the call
}

func measureLargest(t *testing.T, p *promise, name string, limits limitsOfCart) {
	l := startLargest(t, limits)
	l.fill(l.guest, "guest")
	l.fill(l.customer, "customer")
	l.save("full:")
	runs := sized(3, 40)
	bar := p.progress(name, 2*runs)
	for run := range runs + 1 {
		l.restore("full:")
		l.changeAll()
		l.restore("full:")
		l.undo(l.merge())
		if run == 0 {
			clear(l.took) // Redis did not have the scripts before
		}
		_ = bar.Add(1)
	}
	l.restore("full:")
	l.merge()
	l.save("merged:")
	for range runs {
		l.restore("merged:")
		l.changeAll()
		_ = bar.Add(1)
	}
	l.report(p, name)
}

func startLargest(t *testing.T, limits limitsOfCart) *largest {
	server, database := ephemeral.StartRedis(t, "--slowlog-log-slower-than", "0", "--slowlog-max-len", "1000"), catalog(t)
	execSQL(t, database, fmt.Sprintf(`
		INSERT INTO products (store_id, id, name, slug, type, price, original_price, stock, max_per_cart)
		VALUES (1, %[1]d, 'Tall', 'tall', 'digital', 1000, 1000, 1000000, 1000000);
		INSERT INTO fields (store_id, product_id, name, required, position) VALUES (1, %[1]d, 'f', false, 0)`, tallProduct))
	settings := append([]string{"REDIS_URL=" + server.URL, "DATABASE_URL=" + database}, limits.settings...)
	client := newShopper(t, startService(t, settings...))
	token, login := "a-token-of-the-largest-cart", customer(t, "largest")
	return &largest{
		t: t, redis: server.Admin(), limits: limits,
		guest: client.as(token, ""), customer: client.as("", login), both: client.as(token, login),
		took: map[string][]time.Duration{},
	}
}

// line returns an add of a line. All lines of a cart have just the text that the limit allows.
func (l *largest) line(owner string, i int) string {
	text := l.limits.text / l.limits.lines
	notice := min(500, text*2/3)
	value := fmt.Sprintf("%s-%d-", owner, i)
	value += strings.Repeat("f", text-notice-len("f")-len(value)) // the name of the field counts
	return fmt.Sprintf(`{"product_id":%d,"fields":{"f":%q},"notice":%q}`, tallProduct, value, strings.Repeat("n", notice))
}

// fill fills a cart with lines, text, idempotency keys that record their lines, and stamps.
func (l *largest) fill(c *shopper, owner string) {
	for i := range max(l.limits.lines, 256) {
		l.want("", c, "POST", "/cart/add", l.line(owner, i%l.limits.lines), "Idempotency-Key", fmt.Sprint("key-", i))
	}
	for i := range 16 {
		l.want("", c, "POST", "/cart/add", l.line(owner, i), "X-Timestamp", fmt.Sprint(i))
	}
	l.want("", c, "POST", "/cart/coupon", `{"coupon":"TEN"}`)
	l.want("cart_full", c, "POST", "/cart/add", `{"product_id":1001}`)
}

// want repeats a call while the machine is too busy. A change may count twice, which does no harm.
func (l *largest) want(code string, c *shopper, method, path, body string, headers ...string) (r reply) {
	l.t.Helper()
	ephemeral.Until(l.t, func() error {
		if r = c.send(method, path, body, headers...); r.Status == 0 || r.Status >= 500 {
			return fmt.Errorf("got %v", r)
		}
		return nil
	})
	assert.Require(l.t, r.Code == code, "%s %s: got %d %s, want %q", method, path, r.Status, r.Code, code)
	return r
}

// changeAll makes every kind of change of the customer's cart.
func (l *largest) changeAll() {
	items := l.want("", l.customer, "GET", "/cart", "").Cart.Items
	first, last := "/cart/items/"+items[0].ID, "/cart/items/"+items[len(items)-1].ID
	line, n := l.line("customer", 1), strconv.FormatInt(time.Now().UnixNano(), 36)
	for i, step := range []struct{ kind, method, path, body, header, key, code string }{
		{"change", "POST", "/cart/add", line, "Idempotency-Key", "add", ""},
		{"", "POST", "/cart/add", line, "Idempotency-Key", "add", ""}, // a replay
		{"change", "POST", "/cart/add", line, "X-Timestamp", "", ""},
		{"", "POST", "/cart/add", `{"product_id":1001}`, "Idempotency-Key", "full", "cart_full"},
		{"change", "PATCH", last, `{"quantity":7}`, "Idempotency-Key", "set", ""},
		{"change", "PATCH", first, `{"quantity":8}`, "X-Timestamp", "", ""},
		{"", "PATCH", fmt.Sprint("/cart/items/", tallProduct), `{"quantity":8}`, "X-Timestamp", "", "validation_failed"}, // several lines
		{"change", "PATCH", last, `{"notice":"short"}`, "Idempotency-Key", "notice", ""},
		{"change", "PATCH", first, `{"fields":{"f":"other"}}`, "Idempotency-Key", "fields", ""},
		{"", "POST", "/cart/add", `{"product_id":1001,"qty":0}`, "Idempotency-Key", "judge", "validation_failed"},
		{"change", "DELETE", "/cart/coupon", "", "Idempotency-Key", "coupon", ""},
		{"change", "DELETE", last, "", "Idempotency-Key", "remove", ""},
		{"change", "DELETE", "/cart/clear", "", "Idempotency-Key", "clear", ""},
	} {
		if step.key == "" {
			step.key = fmt.Sprint(i)
		}
		l.run(step.kind, func() { l.want(step.code, l.customer, step.method, step.path, step.body, step.header, n+step.key) })
	}
}

func (l *largest) merge() (id string) {
	l.run("merge", func() {
		ephemeral.Eventually(l.t, "the merge of the carts", func() bool { // it may be postponed, because the machine is busy
			r := l.want("", l.both, "GET", "/cart", "")
			if len(r.Cart.Items) != 2*l.limits.lines || l.merging() {
				return false
			}
			id = r.Cart.Merge.ID
			return true
		})
	})
	return id
}

func (l *largest) undo(id string) {
	l.run("undo", func() {
		r := l.want("", l.customer, "POST", "/cart/merge/undo", fmt.Sprintf(`{"id":%q}`, id))
		assert.Require(l.t, len(r.Cart.Items) == l.limits.lines, "after the undo, the cart has %d lines", len(r.Cart.Items))
	})
}

func (l *largest) merging() bool {
	members := l.redis.HKeys(l.t.Context(), "cart:{1:c:largest}").Val()
	assert.Require(l.t, len(members) != 0, "Redis does not have the customer's cart")
	return slices.ContainsFunc(members, func(m string) bool { return m[0] == 'm' })
}

// save copies all keys under a prefix.
func (l *largest) save(prefix string) {
	for _, key := range l.redis.Keys(l.t.Context(), "cart:*").Val() {
		assert.NoError(l.t, l.redis.Copy(l.t.Context(), key, prefix+key, 0, true).Err())
	}
}

func (l *largest) restore(prefix string) {
	ctx := l.t.Context()
	saved := l.redis.Keys(ctx, prefix+"*").Val()
	_, err := l.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, key := range l.redis.Keys(ctx, "cart:*").Val() {
			p.Del(ctx, key)
		}
		for _, key := range saved {
			p.Copy(ctx, key, strings.TrimPrefix(key, prefix), 0, true)
		}
		return nil
	})
	assert.Require(l.t, err == nil && len(saved) != 0, "restore %d keys: %v", len(saved), err)
}

// run makes a call and records from the slow log how long each of its commits took. It requires some if kind is not "".
func (l *largest) run(kind string, call func()) {
	l.t.Helper()
	assert.NoError(l.t, l.redis.Do(l.t.Context(), "slowlog", "reset").Err())
	call()
	before := len(l.took[kind])
	for _, command := range assert.Must(l.redis.SlowLogGet(l.t.Context(), -1).Result())(l.t) {
		if command.Args[0] == "evalsha" && kind != "" {
			l.took[kind] = append(l.took[kind], command.Duration)
		}
	}
	assert.Require(l.t, kind == "" || len(l.took[kind]) > before, "the %s has committed nothing", kind)
}

// report adds the times of all commits to the promise's row. In the short form, only a commit
// that is always slow breaks the promise.
func (l *largest) report(p *promise, limits string) {
	var worst, worstMedian string
	slowest, median := map[string]time.Duration{}, map[string]time.Duration{}
	for name, took := range l.took {
		slices.Sort(took)
		slowest[name], median[name] = took[len(took)-1], took[len(took)/2]
		if slowest[name] > slowest[worst] {
			worst = name
		}
		if median[name] > median[worstMedian] {
			worstMedian = name
		}
		l.t.Logf("%s: %s: %d runs, fastest %v, median %v, slowest %v", limits, name, len(took), took[0], median[name], slowest[name])
		bound := sized(10*scriptLimit, scriptLimit)
		if judged := sized(took[0], slowest[name]); judged > bound && l.limits.settings == nil {
			p.broke("%s: a commit of a %s took %v", limits, name, judged)
		}
	}
	p.lasted(fmt.Sprintf("%s: slowest run of a script (%s)", limits, worst), slowest[worst])
	p.detail(fmt.Sprintf("%s: slowest median of a script (%s)", limits, worstMedian), milliseconds(median[worstMedian]), "ms")
}
