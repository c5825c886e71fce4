package torture

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"commerce/deploy/ephemeral"
)

// A cluster grows from three to six masters, each with a replica: redis-cli moves half of all slots, with their
// carts, while shoppers fill, read and merge carts through two instances. Not one call
// fails, also not those without a key, and every change counts once.
func TestGrowth_OfAClusterFailsNoCallAndLosesNothing(t *testing.T) {
	t.Parallel()
	cluster := ephemeral.StartCluster(t)
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

	cluster.AddShards(3)
	var moved atomic.Bool
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
	err := cluster.Rebalance(t.Context())
	t.Log("the slots moved within", time.Since(began).Round(time.Second))
	moved.Store(true)
	all.Wait()
	if err != nil {
		t.Fatal(err)
	}
	for worker := range 4 {
		all.Go(func() {
			for i := worker; i < len(idle); i += 4 {
				idle[i].look()
				idle[i].logIn()
			}
		})
	}
	all.Wait()
	served, err := cluster.Slots(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, slots := range served {
		if isReplica := i/3%2 == 1; !isReplica && slots < 2500 {
			t.Errorf("node %d serves %d slots: %v", i, slots, served)
		}
	}
	t.Logf("slots %v, %d carts, %d calls", served, g.carts.Load(), g.calls.Load())
}

// growth is what all loyal shoppers share.
type growth struct {
	t            *testing.T
	clients      []*shopper // of each instance
	carts, calls atomic.Int64
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

// must makes a call through one instance after the other. It must succeed.
func (r *loyal) must(as [2]*shopper, method, path, body string, headers ...string) reply {
	r.step++
	r.g.calls.Add(1)
	answer := as[r.step%2].send(method, path, body, headers...)
	if answer.Status != 200 {
		r.g.t.Errorf("%s, step %d: %s %s: %v", r.name, r.step, method, path, answer)
	}
	return answer
}

// shows checks that a cart has exactly what its shopper has bought.
func (r *loyal) shows(answer reply) {
	got := answer.Cart.quantities()
	if fmt.Sprint(got) != fmt.Sprint(r.want) {
		r.g.t.Errorf("%s, step %d: the cart has %v, want %v", r.name, r.step, got, r.want)
	}
}

// fill buys with and without keys, and repeats what has a key.
func (r *loyal) fill() {
	first, second := strconv.Itoa(firstProduct), strconv.Itoa(firstProduct+1)
	for i := range 2 {
		r.want[first]++
		r.shows(r.must(r.clients, "POST", "/cart/add", `{"product_id":`+first+`}`))
		r.want[second] += 2
		for range 2 {
			r.shows(r.must(r.clients, "POST", "/cart/add", `{"product_id":`+second+`,"qty":2}`, "Idempotency-Key", strconv.Itoa(i)))
		}
	}
	r.want[first] = 7
	r.shows(r.must(r.clients, "PATCH", "/cart/items/"+first, `{"quantity":7}`))
	r.look()
}

func (r *loyal) look() { r.shows(r.must(r.clients, "GET", "/cart", "")) }

// logIn merges the guest's cart into the customer's, whose slot is another one.
func (r *loyal) logIn() {
	r.shows(r.must(r.customer, "GET", "/cart", ""))
	r.want[strconv.Itoa(firstProduct)]++
	r.shows(r.must(r.customer, "POST", "/cart/add", `{"product_id":`+strconv.Itoa(firstProduct)+`}`))
	r.shows(r.must(r.customer, "GET", "/cart", ""))
}
