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
	_, err := j.verifier()
	f.Add(j.name(), err)
	return f
}

// name is the setting that an error of verifier belongs to.
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
