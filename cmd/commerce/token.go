package main

import (
	"errors"
	"fmt"
	"time"
)

type tokenCommand struct {
	Customer customerTokenCommand `cmd:"" help:"Print a customer's token (JWT), alone on standard output."`
}

type customerTokenCommand struct {
	JWT      jwtSettings   `embed:""`
	Store    int64         `required:"" help:"The store's id."`
	Customer string        `required:"" help:"The customer's id, 1 to 255 characters."`
	TTL      time.Duration `name:"ttl" default:"1h" help:"How long the token is valid."`
}

// Run prints the token.
func (c *customerTokenCommand) Run(out output) error {
	tokens, err := c.JWT.verifier()
	if err != nil {
		return err
	}
	switch {
	case c.Store < 1:
		return &badSetting{"--store", errors.New("must be a store's id")}
	case len(c.Customer) == 0 || len([]rune(c.Customer)) > 255:
		return &badSetting{"--customer", errors.New("must be 1 to 255 characters")}
	case c.TTL <= 0:
		return &badSetting{"--ttl", errors.New("must be more than 0")}
	}
	token, err := tokens.Sign(c.Store, c.Customer, c.TTL)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, token)
	return err
}
