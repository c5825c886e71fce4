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
	"commerce/cmd/internal/cli"
	"commerce/deploy/connect"
)

// shopperFlags name the shopper that a command is about.
type shopperFlags struct {
	RedisURL        string
	Store           int64 // 0: not given
	Customer, Token string
}

// shopperUsage shows that exactly one of two flags is required.
const shopperUsage = "(--customer=ID | --token=TOKEN) [flags]"

// Settings implements cli.Runnable.
func (s *shopperFlags) Settings() []cli.Setting {
	return []cli.Setting{
		redisSetting(&s.RedisURL, "Redis URL, as for serve."),
		{Name: "store", Hint: "ID", Default: "0", Help: "The store's id. Optional with --token: without it, all stores are searched.", Value: cli.Number(&s.Store, 0, 0)},
		{Name: "customer", Hint: "ID", Help: "The customer's id.", Value: cli.Text(&s.Customer, nil)},
		{Name: "token", Hint: "TOKEN", Help: "A guest's cart token.", Value: cli.Text(&s.Token, nil)},
	}
}

// Faults checks the flags together.
func (s *shopperFlags) Faults() (f cli.Faults) {
	switch {
	case s.Customer == "" && s.Token == "":
		f.Add("--customer", errors.New("is required, or --token instead"))
	case s.Customer != "" && s.Token != "":
		f.Add("--customer", errors.New("--customer and --token are both set; set only one"))
	case s.Customer != "" && s.Store == 0:
		f.Add("--store", errors.New("must be a store's id"))
	}
	if _, ok := auth.ParseCartToken(s.Token); s.Token != "" && !ok {
		f.Add("--token", errors.New("is not a cart token: 22 to 128 of A-Z, a-z, 0-9, _ and -"))
	}
	return f
}

type cartShowCommand struct {
	shopperFlags
}

// Run prints what is stored.
func (c *cartShowCommand) Run(ctx context.Context, out cli.Output) error {
	return c.with(ctx, func(carts *redisstore.Store, refs []redisstore.Ref) error {
		held, err := each(refs, func(ref redisstore.Ref) ([]redisstore.Holding, error) { return carts.Holdings(ctx, ref) })
		if err != nil {
			return err
		}
		if len(held) == 0 {
			fmt.Fprintln(out, "Nothing is stored.")
		}
		for _, h := range held {
			describe(out, h)
		}
		return nil
	})
}

type cartEraseCommand struct {
	shopperFlags
}

// Run deletes what is stored and prints a summary of it.
func (c *cartEraseCommand) Run(ctx context.Context, out cli.Output) error {
	return c.with(ctx, func(carts *redisstore.Store, refs []redisstore.Ref) error {
		held, err := each(refs, func(ref redisstore.Ref) ([]redisstore.Holding, error) { return carts.Erase(ctx, ref) })
		if err != nil {
			return err
		}
		if len(held) == 0 {
			fmt.Fprintln(out, "Nothing was stored.")
		}
		for _, h := range held {
			fmt.Fprintf(out, "Erased: %s.\n", summary(h))
		}
		return nil
	})
}

// each collects what find returns for all refs.
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

// with calls do with a Redis client and the shopper's carts: one, or with a token and no
// store one for each store that has a cart under the token.
func (s *shopperFlags) with(ctx context.Context, do func(*redisstore.Store, []redisstore.Ref) error) error {
	rdb, err := connect.Redis(s.RedisURL)
	if err != nil {
		return &cli.BadSetting{Name: "REDIS_URL", Err: err}
	}
	defer rdb.Close()
	carts := redisstore.New(redisstore.Config{Client: rdb})
	token, _ := auth.ParseCartToken(s.Token) // Faults has checked it
	var refs []redisstore.Ref
	switch {
	case s.Token == "":
		refs = []redisstore.Ref{redisstore.CustomerRef(s.Store, s.Customer)}
	case s.Store != 0:
		refs = []redisstore.Ref{redisstore.GuestRef(s.Store, token)}
	default:
		if refs, err = carts.GuestRefs(ctx, token); err != nil {
			return err
		}
	}
	return do(carts, refs)
}

func summary(h redisstore.Holding) string {
	switch h.Kind {
	case redisstore.KindKeys:
		return fmt.Sprintf("idempotency keys: %d (digests of requests, and the lines that some of them changed)", h.Entries)
	case redisstore.KindOffers:
		return fmt.Sprintf("quantities merged from a guest's cart: %d", h.Entries)
	case redisstore.KindClaimed:
		return fmt.Sprintf("a guest's cart that is being merged into a customer's, lines: %d", len(h.Cart.Lines))
	}
	return fmt.Sprintf("a cart, lines: %d, version: %d", len(h.Cart.Lines), h.Cart.Version)
}

// describe prints a Holding in full, to answer a data-access request.
func describe(out cli.Output, h redisstore.Holding) {
	fmt.Fprintf(out, "%s. Stored until %s.\n", sentence(summary(h)), time.Now().Add(h.Expires).UTC().Format(time.DateTime+" UTC"))
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

// onOneLine escapes line breaks, control characters and everything else in a shopper's
// text that could change how a terminal shows the rest of the output.
func onOneLine(s string) string {
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
