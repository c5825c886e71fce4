package auth

import (
	"errors"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/golang-jwt/jwt/v5"
)

// payload has the claims of a JWT in the form that the library validates. A claim that is
// present must have its type: null does not count as absent.
type payload struct {
	jwt.RegisteredClaims                // without iat and jti, which are not checked
	storeID              jsontext.Value // empty: absent
}

// UnmarshalJSON reads the claims more strictly than encoding/json, which accepts "SUB" for
// "sub", the last of duplicate members, and invalid UTF-8. Each of these could identify
// one customer here and another one elsewhere.
func (p *payload) UnmarshalJSON(text []byte) error {
	var raw struct {
		Issuer    jsontext.Value `json:"iss"`
		Audience  jsontext.Value `json:"aud"`
		Subject   jsontext.Value `json:"sub"`
		StoreID   jsontext.Value `json:"store_id"`
		Expiry    jsontext.Value `json:"exp"`
		NotBefore jsontext.Value `json:"nbf"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return errClaimType
	}
	var errs [5]error
	p.Issuer, errs[0] = claimText(raw.Issuer)
	p.Audience, errs[1] = claimTexts(raw.Audience)
	p.Subject, errs[2] = claimText(raw.Subject)
	p.ExpiresAt, errs[3] = claimTime(raw.Expiry)
	p.NotBefore, errs[4] = claimTime(raw.NotBefore)
	p.storeID = raw.StoreID
	return errors.Join(errs[:]...)
}

// errClaimType replaces all errors about the JSON of claims. A parser's error may quote
// them.
var errClaimType = errors.New("a claim is not of its type")

// claimText reads a string, "" if it is absent.
func claimText(v jsontext.Value) (s string, err error) {
	absent := v.Kind() == jsontext.KindInvalid
	if !absent && (v.Kind() != jsontext.KindString || json.Unmarshal(v, &s) != nil) {
		return "", errClaimType
	}
	return s, nil
}

// claimTexts reads a string or an array of strings.
func claimTexts(v jsontext.Value) (list []string, err error) {
	if v.Kind() != jsontext.KindBeginArray {
		s, err := claimText(v)
		if s != "" {
			list = []string{s}
		}
		return list, err
	}
	if json.Unmarshal(v, &list) != nil {
		return nil, errClaimType
	}
	return list, nil
}

// maxClaimTime is the maximum distance from 1970 in seconds. Up to it a float64 is exact;
// beyond int64 the conversion differs between processors.
const maxClaimTime = 1 << 53

// claimTime reads a NumericDate, nil if it is absent. It truncates fractions of a second.
func claimTime(v jsontext.Value) (*jwt.NumericDate, error) {
	switch v.Kind() {
	case jsontext.KindInvalid: // absent
		return nil, nil
	case jsontext.KindNumber:
		seconds, err := strconv.ParseFloat(string(v), 64)
		if err == nil && seconds >= -maxClaimTime && seconds <= maxClaimTime {
			return jwt.NewNumericDate(time.Unix(int64(seconds), 0)), nil
		}
	}
	return nil, errClaimType
}

// claimStore reads a store's ID, a number or its decimal text, 0 if it is absent.
func claimStore(v jsontext.Value) (id int64, ok bool) {
	switch v.Kind() {
	case jsontext.KindInvalid: // absent
		return 0, true
	case jsontext.KindNumber:
		return parseID(string(v))
	case jsontext.KindString:
		digits, _ := claimText(v)
		return parseID(digits)
	}
	return 0, false
}
