package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"commerce/auth"
	"commerce/cmd/internal/cli"
)

// jwtSettings are the settings for signing and verifying customers' tokens.
type jwtSettings struct {
	Secret, Previous, JWKSURL, Issuer, Audience string

	// Set by demo and serve; nil in commands, which fetch no keys.
	log       *slog.Logger
	propagate func(context.Context, http.Header) // see auth.JWKSConfig
	reachable func(bool)                         // see auth.JWKSConfig
}

// settings declares the settings.
func (j *jwtSettings) settings() []cli.Setting {
	return []cli.Setting{
		{Name: "JWT_SECRET", Secret: true, Help: "Secret of customers' tokens (HS256), at least 32 bytes.", Value: cli.Text(&j.Secret, nil)},
		{Name: "JWT_SECRET_PREVIOUS", Secret: true, Help: "Previous secret, still accepted during a rotation.", Value: cli.Text(&j.Previous, nil)},
		{Name: "JWT_JWKS_URL", Hint: "URL", Help: "URL of the issuer's keys (RS256, ES256, EdDSA). Replaces JWT_SECRET.", Value: cli.Text(&j.JWKSURL, nil)},
		{Name: "JWT_ISSUER", Help: "Issuer that tokens must have. Default: any.", Value: cli.Text(&j.Issuer, nil)},
		{Name: "JWT_AUDIENCE", Help: "Audience that tokens must have. Default: any.", Value: cli.Text(&j.Audience, nil)},
	}
}

// faults checks the settings together.
func (j jwtSettings) faults() (f cli.Faults) {
	switch {
	case j.Secret == "" && j.JWKSURL == "":
		f.Add("JWT_SECRET", errors.New("is required, or JWT_JWKS_URL instead"))
	case j.Secret != "" && j.JWKSURL != "":
		f.Add("JWT_SECRET", errors.New("JWT_SECRET and JWT_JWKS_URL are both set; set only one"))
	case j.Secret != "":
		f.Add("JWT_SECRET", auth.CheckJWTSecret([]byte(j.Secret)))
	default:
		_, err := j.jwks()
		f.Add("JWT_JWKS_URL", err)
	}
	if j.Previous != "" {
		f.Add("JWT_SECRET_PREVIOUS", auth.CheckJWTSecret([]byte(j.Previous)))
	}
	return f
}

// verifier returns what verifies and signs customers' tokens.
func (j jwtSettings) verifier() (_ *auth.JWT, err error) {
	config := auth.JWTConfig{
		Secret: []byte(j.Secret), PreviousSecret: []byte(j.Previous), Issuer: j.Issuer, Audience: j.Audience,
	}
	if j.JWKSURL != "" {
		if config.JWKS, err = j.jwks(); err != nil {
			return nil, err
		}
	}
	return auth.NewJWT(config)
}

func (j jwtSettings) jwks() (*auth.JWKS, error) {
	return auth.NewJWKS(auth.JWKSConfig{URL: j.JWKSURL, Log: j.log, Propagate: j.propagate, Reachable: j.reachable})
}
