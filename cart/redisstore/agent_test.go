package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/redisstore"
	"commerce/cart/service"
	"commerce/deploy/assert"
)

func (d *desk) agent() service.Agent {
	return service.Agent{Store: d.store, Client: "192.0.2.1", Profile: "https://platform.example/profile"}
}

// opens begins an agent's call to the cart of an ID.
func (d *desk) opens(id string) *service.AgentVisit {
	d.t.Helper()
	v, ok := d.AgentVisit(d.agent(), id)
	assert.Require(d.t, ok, "%q is no ID", id)
	return v
}

// wants returns a replacement by "product×quantity …". With " ~", an element has the ID that shown gave it.
func wants(lines string, shown ...cart.Cart) (r cart.Replacement) {
	for _, line := range strings.Fields(lines) {
		var e cart.Element
		_, _ = fmt.Sscanf(line, "%d×%d", &e.Product, &e.Quantity)
		for _, c := range shown {
			id := cart.NewLineID(e.Product, 0, nil)
			if !c.Has(id) {
				id = ""
			}
			e.ID = c.ShownID(id)
		}
		r.Elements = append(r.Elements, e)
	}
	return r
}

func (d *desk) agentCreates(lines string) service.AgentCart {
	d.t.Helper()
	return assert.Must(d.AgentCreate(d.t.Context(), d.NewAgentVisit(d.agent(), ""), service.Conditions{}, wants(lines)))(d.t)
}

func TestAgent_CreatesReadsReplacesAndCancels(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "")
	made := d.agentCreates("1×2 2×1 9×1")
	assert.Require(t, made.Created && linesOf(made.Cart) == "1×2 2×1", "created %v: %s", made.Created, linesOf(made.Cart))
	assert.That(t, len(made.Faults) == 1 && made.Faults[0].Element == 2 && made.Faults[0].Problem.Code == problem.ProductNotFound, "faults %+v", made.Faults)
	read := assert.Must(d.AgentRead(t.Context(), d.opens(made.ID)))(t)
	assert.Equal(t, linesOf(read.Cart), "1×2 2×1", "read")
	replaced := assert.Must(d.AgentReplace(t.Context(), d.opens(made.ID), service.Conditions{}, wants("3×1 1×1", read.Cart)))(t)
	assert.Equal(t, linesOf(replaced.Cart), "1×1 3×1", "replaced")
	assert.Equal(t, replaced.Cart.Version, read.Cart.Version+1, "one version")
	replaced = assert.Must(d.AgentReplace(t.Context(), d.opens(made.ID), service.Conditions{}, wants("1×1 3×1")))(t)
	assert.Equal(t, replaced.Cart.Version, read.Cart.Version+1, "nothing altered")
	canceled := assert.Must(d.AgentCancel(t.Context(), d.opens(made.ID), service.Conditions{}))(t)
	assert.Equal(t, linesOf(canceled.Cart), "1×1 3×1", "as it was")
	_, err := d.AgentRead(t.Context(), d.opens(made.ID))
	assert.That(t, isProblem(err, problem.NotFound), "read after cancel: %v", err)
	_, err = d.AgentReplace(t.Context(), d.opens(made.ID), service.Conditions{}, wants("1×1"))
	assert.That(t, isProblem(err, problem.NotFound), "replace after cancel: %v", err)
}

var _ = errors.New
var _ context.Context
var _ redisstore.Ref
