package torture

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// A cluster grows from three to six masters, each with a replica, by the commands of
// docs/scale.md: redis-cli moves half of all slots, with their carts, while shoppers fill, read
// and merge carts through two instances.
// Every change counts once, with and without a key. On a busy machine, a few calls are late.
func TestGrowth_OfAClusterLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	cluster := ephemeral.StartCluster(t)
	for _, node := range cluster.Nodes { // a failover may lose changes, which is not tested here
		assert.NoError(t, node.Admin().ConfigSet(t.Context(), "cluster-node-timeout", longPatience).Err())
	}
	database := catalog(t)
	g := &growth{t: t}
	for range 2 {
		s := startService(t, "REDIS_URL="+cluster.URL, "DATABASE_URL="+database)
		g.clients = append(g.clients, newShopper(t, s))
	}
	idle := make([]*loyal, sized(300, 20_000)) // their carts move while nobody uses them
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := worker; i < len(idle); i += 4 {
				idle[i] = g.newLoyal(fmt.Sprintf("idle-%d", i))
				idle[i].fill()
			}
		})
	}
	all.Wait()

	join, rebalance, login := growCommands(t, cluster)
	follow(t, t.TempDir(), join, login)
	var moved atomic.Bool
	defer moved.Store(true)
	for worker := range 4 {
		all.Go(func() {
			for i := 0; !moved.Load(); i++ {
				r := g.newLoyal(fmt.Sprintf("busy-%d-%d", worker, i))
				r.fill()
				r.logIn()
				idle[(4*i+worker)%len(idle)].look() // one that may be moving
				time.Sleep(visitPause)
			}
		})
	}
	began := time.Now()
	follow(t, t.TempDir(), rebalance, login)
	t.Log("the slots moved within", time.Since(began).Round(time.Second))
	moved.Store(true)
	all.Wait()
	for worker := range 4 {
		all.Go(func() {
			for i := worker; i < len(idle); i += 4 {
				idle[i].look()
				idle[i].logIn()
			}
		})
	}
	all.Wait()
	var served []int64
	for _, shard := range cluster.Nodes[0].Admin().ClusterShards(t.Context()).Val() {
		var slots int64
		for _, r := range shard.Slots {
			slots += r.End - r.Start + 1
		}
		served = append(served, slots)
	}
	assert.That(t, len(served) == 6 && slices.Min(served) >= 2500,
		"the masters serve %d slots, want six with 2500 or more", served)
	t.Logf("slots %v; %d carts, %d calls, of which %d were repeated, %d had an unknown outcome and %d came before a merge was complete",
		served, g.carts.Load(), g.calls.Load(), g.repeated.Load(), g.unknown.Load(), g.later.Load())
	late, calls := g.repeated.Load()+g.unknown.Load()+g.later.Load(), g.calls.Load()
	if late > sized(calls, calls/100) { // in the short form, other tests keep the machine busy
		t.Errorf("%d of %d calls were not served at once", late, calls)
	}
}

// growCommands starts six nodes. It returns the page's commands that let them join as three
// masters and their replicas, those that move slots to them, and the setting with which they log in.
// The page adds two masters.
func growCommands(t *testing.T, cluster *ephemeral.RedisCluster) (join, rebalance, login string) {
	t.Helper()
	users := readFile(t, "../../../deploy/redis/users.conf")
	admin := assert.Must(url.Parse(ephemeral.AsUser(t, cluster.URL, users, "admin")))(t)
	password, _ := admin.User.Password()
	var added []string
	for range 6 {
		node := ephemeral.StartRedis(t, "--cluster-enabled", "yes", "--cluster-node-timeout", longPatience)
		ephemeral.AsUser(t, node.URL, users, "admin")
		added = append(added, strings.TrimPrefix(node.URL, "redis://"))
	}
	old := cluster.Nodes[0].Admin().Options().Addr
	commands := strings.NewReplacer(
		"redis1.example.com:6379", old,
		"redis2.example.com:6379", added[0]+" "+added[1],
		"redis3.example.com:6379", added[2],
		"redis4.example.com:6379", added[3],
		"redis5.example.com:6379", added[4],
		"redis6.example.com:6379", added[5],
	).Replace(shellBlocks(t, "docs/scale.md", "## More masters")[0])
	const last = "redis-cli --user admin --cluster rebalance"
	join, rebalance, found := strings.Cut(commands, last)
	assert.Require(t, found, "no %s in the page", last)
	return join, "OLD=" + old + "\n" + last + rebalance, "REDISCLI_AUTH=" + password
}

type growth struct {
	t            *testing.T
	clients      []*shopper // of each instance
	carts, calls atomic.Int64

	repeated atomic.Int64 // calls, because of a 503
	unknown  atomic.Int64 // calls without a key whose outcome the cart had to tell
	later    atomic.Int64 // reads that a login's merge was not yet in
}

// loyal is a guest with a cart of two lines, who may log in.
type loyal struct {
	g        *growth
	name     string
	clients  [2]*shopper // with the guest's token
	customer [2]*shopper // with the guest's token and a JWT
	step     int
	want     map[string]int64 // quantities by line
}

func (g *growth) newLoyal(name string) *loyal {
	r := &loyal{g: g, name: name, want: map[string]int64{}}
	token, jwt := "a-token-of-a-loyal-customer-"+name, customer(g.t, "loyal-"+name)
	for i, client := range g.clients {
		r.clients[i], r.customer[i] = client.as(token, ""), client.as(token, jwt)
	}
	g.carts.Add(1)
	return r
}

// call makes a call through one instance after the other until it is served. A 503 is safe to
// repeat, and so is everything that is not a change without a key. If the outcome of such a
// change is unknown, call reports false.
func (r *loyal) call(as [2]*shopper, method, path, body string, headers ...string) (answer reply, known bool) {
	for began := time.Now(); ; time.Sleep(visitPause) {
		r.step++
		r.g.calls.Add(1)
		answer = as[r.step%2].send(method, path, body, headers...)
		switch answer.outcome() {
		case applied:
			return answer, true
		case unknown:
			if method == "POST" && len(headers) == 0 {
				return answer, false
			}
		}
		r.g.repeated.Add(1)
		if answer.outcome() == refused || time.Since(began) > serveLimit {
			r.g.t.Errorf("%s, step %d: %s %s: %v", r.name, r.step, method, path, answer)
			return answer, true
		}
	}
}

// add buys one unit without a key. If nobody knows whether that succeeded, the cart tells.
func (r *loyal) add(as [2]*shopper, line string) {
	r.want[line]++
	if answer, known := r.call(as, "POST", "/cart/add", `{"product_id":`+line+`}`); known {
		r.shows(answer)
		return
	}
	r.g.unknown.Add(1)
	if answer, _ := r.call(as, "GET", "/cart", ""); answer.Cart.quantities()[line] == r.want[line]-1 {
		r.want[line]--
	}
	if r.want[line] == 0 { // the cart has no such line
		delete(r.want, line)
	}
}

func (r *loyal) shows(answer reply) {
	got := answer.Cart.quantities()
	assert.That(r.g.t, maps.Equal(got, r.want), "%s, step %d: the cart has %v, want %v", r.name, r.step, got, r.want)
}

var firstLine, secondLine = strconv.Itoa(firstProduct), strconv.Itoa(firstProduct + 1)

// fill buys with and without keys, and repeats what has a key.
func (r *loyal) fill() {
	for i := range 2 {
		r.add(r.clients, firstLine)
		r.want[secondLine] += 2
		for range 2 {
			answer, _ := r.call(r.clients, "POST", "/cart/add", `{"product_id":`+secondLine+`,"qty":2}`, "Idempotency-Key", strconv.Itoa(i))
			r.shows(answer)
		}
	}
	r.want[firstLine] = 7
	answer, _ := r.call(r.clients, "PATCH", "/cart/items/"+firstLine, `{"quantity":7}`)
	r.shows(answer)
	r.look()
}

func (r *loyal) look() {
	answer, _ := r.call(r.clients, "GET", "/cart", "")
	r.shows(answer)
}

// logIn merges the guest's cart into the customer's, whose slot is another one. If a shard is
// slow, the merge is completed by a later request.
func (r *loyal) logIn() {
	for began := time.Now(); ; time.Sleep(visitPause) {
		answer, _ := r.call(r.customer, "GET", "/cart", "")
		if maps.Equal(answer.Cart.quantities(), r.want) || time.Since(began) > serveLimit {
			r.shows(answer)
			break
		}
		r.g.later.Add(1)
	}
	r.add(r.customer, firstLine)
	answer, _ := r.call(r.customer, "GET", "/cart", "")
	r.shows(answer)
}
