package main

import (
	"errors"
	"fmt"
	"time"
)

type tokenCommand struct {
	Customer customerTokenCommand `cmd:"" help:"Sign a customer's token (JWT) and print it."`
	Store    storeTokenCommand    `cmd:"" help:"Create an API token for a store and print it. It cannot be printed again."`
	List     listTokensCommand    `cmd:"" help:"List the API tokens of all stores, including revoked ones."`
	Revoke   revokeTokenCommand   `cmd:"" help:"Revoke an API token. This cannot be undone."`
}

type customerTokenCommand struct {
	JWT      jwtSettings   `embed:""`
	Store    int64         `required:"" placeholder:"ID" help:"The store's id."`
	Customer string        `required:"" placeholder:"ID" help:"The customer's id, 1 to 255 characters."`
	TTL      time.Duration `name:"ttl" default:"1h" help:"How long the token is valid."`
}

func (c *customerTokenCommand) faults() faults {
	var f faults
	f.add(c.JWT.name(), c.JWT.fault())
	if c.Store < 1 {
		f.add("--store", errors.New("must be a store's id"))
	}
	if len(c.Customer) == 0 || len([]rune(c.Customer)) > 255 {
		f.add("--customer", errors.New("must be 1 to 255 characters"))
	}
	if c.TTL <= 0 {
		f.add("--ttl", errors.New("must be more than 0"))
	}
	return f
}

// Run prints the token.
func (c *customerTokenCommand) Run(out output) error {
	tokens, err := c.JWT.verifier()
	if err != nil {
		return err
	}
	token, err := tokens.Sign(c.Store, c.Customer, c.TTL)
	if err != nil { // the claims or the key are unusable
		return &badSetting{"", err}
	}
	_, err = fmt.Fprintln(out, token)
	return err
}
