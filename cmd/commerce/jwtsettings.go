package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"commerce/auth"
)

// jwtSettings are the settings for signing and verifying customers' tokens.
type jwtSettings struct {
	Secret   string `name:"jwt-secret" env:"JWT_SECRET" secret:"" placeholder:"TEXT" help:"Secret of customers' tokens (HS256), at least 32 bytes."`
	Previous string `name:"jwt-secret-previous" env:"JWT_SECRET_PREVIOUS" secret:"" placeholder:"TEXT" help:"Previous secret, still accepted during a rotation."`
	JWKSURL  string `name:"jwt-jwks-url" env:"JWT_JWKS_URL" placeholder:"URL" help:"URL of the issuer's keys (RS256, ES256, EdDSA). Replaces JWT_SECRET."`
	Issuer   string `name:"jwt-issuer" env:"JWT_ISSUER" placeholder:"TEXT" help:"Issuer that tokens must have. Default: any."`
	Audience string `name:"jwt-audience" env:"JWT_AUDIENCE" placeholder:"TEXT" help:"Audience that tokens must have. Default: any."`

	// Set by demo and serve; nil in commands, which fetch no keys.
	log       *slog.Logger
	propagate func(context.Context, http.Header) // see auth.JWKSConfig
	reachable func(bool)                         // see auth.JWKSConfig
}

// fault returns what is wrong with the settings.
func (j jwtSettings) fault() error {
	_, err := j.verifier()
	return err
}

// name is the setting that an error of fault belongs to.
func (j jwtSettings) name() string {
	if j.Secret == "" && j.JWKSURL != "" {
		return "JWT_JWKS_URL"
	}
	return "JWT_SECRET"
}

// verifier returns what verifies and signs customers' tokens. Its error is about
// JWT_SECRET, unless it begins with the name of another setting.
func (j jwtSettings) verifier() (*auth.JWT, error) {
	config := auth.JWTConfig{
		Secret: []byte(j.Secret), PreviousSecret: []byte(j.Previous), Issuer: j.Issuer, Audience: j.Audience,
	}
	switch {
	case j.Secret == "" && j.JWKSURL == "":
		return nil, errors.New("is required, or JWT_JWKS_URL instead")
	case j.Secret != "" && j.JWKSURL != "":
		return nil, errors.New("JWT_SECRET and JWT_JWKS_URL are both set; set only one")
	case j.JWKSURL != "":
		keys, err := auth.NewJWKS(auth.JWKSConfig{URL: j.JWKSURL, Log: j.log, Propagate: j.propagate, Reachable: j.reachable})
		if err != nil {
			return nil, err
		}
		config.JWKS = keys
	}
	return auth.NewJWT(config)
}
