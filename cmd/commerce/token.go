package main

import (
	"context"
	"fmt"
	"time"

	"commerce/cmd/internal/cli"
)

type customerTokenCommand struct {
	JWT      jwtSettings
	Store    int64
	Customer string
	TTL      time.Duration
}

// Settings implements cli.Runnable.
func (c *customerTokenCommand) Settings() []cli.Setting {
	return append(c.JWT.settings(),
		storeFlag(&c.Store),
		cli.Setting{Name: "customer", Hint: "ID", Required: true, Help: "The customer's id, 1 to 255 characters.", Value: cli.Text(&c.Customer, checkLength)},
		cli.Setting{Name: "ttl", Default: "1h", Help: "How long the token is valid.", Value: cli.Duration(&c.TTL, time.Second, 0)},
	)
}

// Faults checks the settings of tokens.
func (c *customerTokenCommand) Faults() cli.Faults { return c.JWT.faults() }

// Run prints the token.
func (c *customerTokenCommand) Run(_ context.Context, out cli.Output) error {
	tokens, err := c.JWT.verifier()
	if err != nil {
		return err
	}
	token, err := tokens.Sign(c.Store, c.Customer, c.TTL)
	if err != nil { // the claims or the key are unusable
		return &cli.BadSetting{Name: "", Err: err}
	}
	_, err = fmt.Fprintln(out, token)
	return err
}
