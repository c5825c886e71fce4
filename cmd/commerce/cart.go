package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"commerce/auth"
	"commerce/cart/redisstore"
	"commerce/deploy/connect"
)

type cartCommand struct {
	Show  cartShowCommand  `cmd:"" help:"Say what is held about a customer or a cart token."`
	Erase cartEraseCommand `cmd:"" help:"Remove everything that is held about a customer or a cart token."`
}

// whose names the cart that support was asked about.
type whose struct {
	RedisURL string `name:"redis-url" env:"REDIS_URL" secret:"" help:"Redis, as serve takes it."`
	Store    int64  `placeholder:"ID" help:"The store's id. Without it a token is looked for in every store."`
	Customer string `xor:"whose" required:"" help:"The customer's id."`
	Token    string `xor:"whose" required:"" help:"A guest's cart token."`
}

type cartShowCommand struct {
	whose `embed:""`
}

// Run prints what is held.
func (c *cartShowCommand) Run(ctx context.Context, out output) error {
	return c.with(ctx, func(carts *redisstore.Store, refs []redisstore.Ref) error {
		held, err := each(refs, func(ref redisstore.Ref) ([]redisstore.Holding, error) { return carts.Holdings(ctx, ref) })
		if err != nil {
			return err
		}
		if len(held) == 0 {
			fmt.Fprintln(out, "Nothing is held.")
		}
		for _, h := range held {
			describe(out, h)
		}
		return nil
	})
}

type cartEraseCommand struct {
	whose `embed:""`
}

// Run removes what is held and prints what that was.
func (c *cartEraseCommand) Run(ctx context.Context, out output) error {
	return c.with(ctx, func(carts *redisstore.Store, refs []redisstore.Ref) error {
		held, err := each(refs, func(ref redisstore.Ref) ([]redisstore.Holding, error) { return carts.Erase(ctx, ref) })
		if err != nil {
			return err
		}
		if len(held) == 0 {
			fmt.Fprintln(out, "Nothing was held.")
		}
		for _, h := range held {
			fmt.Fprintf(out, "Erased: %s.\n", summary(h))
		}
		return nil
	})
}

// each collects what is found under every reference.
func each(refs []redisstore.Ref, find func(redisstore.Ref) ([]redisstore.Holding, error)) ([]redisstore.Holding, error) {
	var all []redisstore.Holding
	for _, ref := range refs {
		held, err := find(ref)
		if err != nil {
			return nil, err
		}
		all = append(all, held...)
	}
	return all, nil
}

// with opens Redis for a command about one shopper.
func (w *whose) with(ctx context.Context, do func(*redisstore.Store, []redisstore.Ref) error) error {
	if w.RedisURL == "" {
		return &badSetting{"REDIS_URL", errRequired}
	}
	if w.Store < 0 || w.Store == 0 && w.Token == "" {
		return &badSetting{"--store", errors.New("must be a store's id")}
	}
	token, ok := auth.ParseCartToken(w.Token)
	if w.Token != "" && !ok {
		return &badSetting{"--token", errors.New("is not a cart token: 22 to 128 of A-Z, a-z, 0-9, _ and -")}
	}
	rdb, err := connect.Redis(w.RedisURL)
	if err != nil {
		return &badSetting{"REDIS_URL", err}
	}
	defer rdb.Close()
	carts := redisstore.New(redisstore.Config{Client: rdb})
	var refs []redisstore.Ref
	switch {
	case w.Token == "":
		refs = []redisstore.Ref{redisstore.CustomerRef(w.Store, w.Customer)}
	case w.Store != 0:
		refs = []redisstore.Ref{redisstore.GuestRef(w.Store, token)}
	default:
		if refs, err = carts.GuestRefs(ctx, token); err != nil {
			return err
		}
	}
	return do(carts, refs)
}

func summary(h redisstore.Holding) string {
	switch h.Kind {
	case redisstore.HeldKeys:
		return fmt.Sprintf("idempotency keys: %d (which changes were made, not what was in them)", h.Entries)
	case redisstore.HeldOffers:
		return fmt.Sprintf("quantities that came from a guest's cart: %d", h.Entries)
	case redisstore.HeldClaimed:
		return fmt.Sprintf("a guest's cart on its way to a customer, lines: %d", len(h.Cart.Lines))
	}
	return fmt.Sprintf("a cart, lines: %d, version: %d", len(h.Cart.Lines), h.Cart.Version)
}

// describe prints one thing in full: what a person asks for who wants to know what
// is kept about them.
func describe(out output, h redisstore.Holding) {
	fmt.Fprintf(out, "%s. It is kept until %s.\n", sentence(summary(h)), time.Now().Add(h.Expires).UTC().Format(time.DateTime+" UTC"))
	for _, l := range h.Cart.Lines {
		fmt.Fprintf(out, "  %d of product %d", l.Quantity, l.ID.Product())
		if plan := l.ID.Plan(); plan != 0 {
			fmt.Fprintf(out, ", plan %d", plan)
		}
		fmt.Fprintln(out)
		for _, f := range l.Fields {
			fmt.Fprintf(out, "    %s: %s\n", onOneLine(f.Name), onOneLine(f.Value))
		}
		if l.Notice != "" {
			fmt.Fprintf(out, "    notice: %s\n", onOneLine(l.Notice))
		}
	}
	if h.Cart.Coupon != "" {
		fmt.Fprintf(out, "  coupon %s\n", onOneLine(h.Cart.Coupon))
	}
}

// onOneLine is text that a shopper wrote, with escapes for line breaks, control
// characters and whatever else could change how a terminal shows the rest.
func onOneLine(s string) string {
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
