package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"commerce/auth"
	"commerce/cart"
	"commerce/cart/redisstore"
	"commerce/cmd/internal/cli"
	"commerce/cmd/internal/server"
	"commerce/deploy/connect"
)

func newCart() cli.Command {
	erased := func(out cli.Output, h redisstore.Holding) { fmt.Fprintf(out, "Erased: %s.\n", summary(h)) }
	return cli.Command{Name: "cart", Help: "Show or erase what is stored about a shopper, and list abandoned carts.", Commands: []cli.Command{
		cartCommand("show", "Show what is stored about a customer or a cart token.", "Nothing is stored.", (*redisstore.Store).Holdings, describe),
		cartCommand("erase", "Delete everything that is stored about a customer or a cart token.", "Nothing was stored.", (*redisstore.Store).Erase, erased),
		newAbandoned(), newDigest(),
	}}
}

// finding finds, and perhaps deletes, what is stored under a key of a shopper.
type finding func(*redisstore.Store, context.Context, redisstore.Ref) ([]redisstore.Holding, error)

func cartCommand(name, help, none string, find finding, show func(cli.Output, redisstore.Holding)) cli.Command {
	var s shopperFlags
	return cli.Command{
		Name: name, Help: help, Usage: "(--customer=ID | --token=TOKEN) [flags]", Settings: s.settings(), Faults: s.faults,
		Run: func(ctx context.Context, out cli.Output) error {
			held, err := s.find(ctx, find)
			if err != nil {
				return err
			}
			if len(held) == 0 {
				fmt.Fprintln(out, none)
			}
			for _, h := range held {
				show(out, h)
			}
			return nil
		},
	}
}

type shopperFlags struct {
	RedisURL        string
	Store           int64 // 0: not given
	Customer, Token string
}

func (s *shopperFlags) settings() []cli.Setting {
	return []cli.Setting{
		redisSetting(&s.RedisURL, "Redis URL, as for serve."),
		{Name: "store", Hint: "ID", Default: "0", Help: "The store's id. Optional with --token: without it, all stores are searched.", Value: cli.Number(&s.Store, 0, 0)},
		{Name: "customer", Hint: "ID", Help: "The customer's id.", Value: cli.Text(&s.Customer, nil)},
		{Name: "token", Hint: "TOKEN", Help: "A guest's cart token.", Value: cli.Text(&s.Token, nil)},
	}
}

func (s *shopperFlags) faults() (f cli.Faults) {
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

// find collects what is stored about the shopper: in one cart, or with a token and no store in that
// of each store that has one under the token.
func (s *shopperFlags) find(ctx context.Context, find finding) (all []redisstore.Holding, err error) {
	rdb, err := connect.Redis(s.RedisURL)
	if err != nil {
		return nil, &cli.BadSetting{Name: "REDIS_URL", Err: err}
	}
	defer rdb.Close()
	carts := redisstore.New(redisstore.Config{Client: rdb, Beside: server.Beside()})
	token, _ := auth.ParseCartToken(s.Token) // faults has checked it
	var refs []redisstore.Ref
	switch {
	case s.Token == "":
		refs = []redisstore.Ref{redisstore.CustomerRef(s.Store, s.Customer)}
	case s.Store != 0:
		refs = []redisstore.Ref{redisstore.GuestRef(s.Store, token)}
	default:
		if refs, err = carts.GuestRefs(ctx, token); err != nil {
			return nil, err
		}
	}
	for _, ref := range refs {
		held, err := find(carts, ctx, ref)
		if err != nil {
			return nil, err
		}
		all = append(all, held...)
	}
	return all, nil
}

func summary(h redisstore.Holding) string {
	switch h.Kind {
	case redisstore.KindKeys:
		return fmt.Sprintf("idempotency keys: %d (digests of requests, and the lines that some of them changed)", h.Entries)
	case redisstore.KindOffers:
		return fmt.Sprintf("quantities merged from a guest's cart: %d", h.Entries)
	case redisstore.KindClaimed:
		return fmt.Sprintf("a guest's cart that is being merged into this one, lines: %d", len(h.Cart.Lines))
	case redisstore.KindCame:
		return fmt.Sprintf("what a merge has brought, for its undo, entries: %d (quantities, prices, notices, metadata, a coupon, a country)", h.Entries)
	case redisstore.KindUndone:
		return fmt.Sprintf("a guest's cart with what an undo took out of this one, lines: %d", len(h.Cart.Lines))
	case redisstore.KindMoved:
		return "a mark that an agent's cart was handed over"
	case redisstore.KindCart:
		return fmt.Sprintf("a cart, lines: %d, version: %d", len(h.Cart.Lines), h.Cart.Version)
	}
	return cmp.Or(server.SummaryBeside(h), string(h.Kind))
}

// describe prints a Holding in full, to answer a data-access request.
func describe(out cli.Output, h redisstore.Holding) {
	text := summary(h)
	fmt.Fprintf(out, "%s%s. Stored until %s.\n", strings.ToUpper(text[:1]), text[1:], time.Now().Add(h.Expires).UTC().Format(time.DateTime+" UTC"))
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
		describeMetadata(out, "    ", l.Metadata)
	}
	describeMetadata(out, "  ", h.Cart.Metadata)
	for _, code := range h.Cart.Coupons {
		fmt.Fprintf(out, "  coupon %s\n", onOneLine(code))
	}
	if b := h.Cart.Buyer; b.Country != "" {
		fmt.Fprintf(out, "  country of the buyer %s, as said by: %s\n", b.Country, b.Source)
	}
}

func describeMetadata(out cli.Output, indent string, m cart.Metadata) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(out, "%smetadata %s: %s\n", indent, name, onOneLine(m[name]))
	}
}

// onOneLine escapes line breaks, control characters and everything else in a shopper's
// text that could change how a terminal shows the rest of the output.
func onOneLine(s string) string {
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
