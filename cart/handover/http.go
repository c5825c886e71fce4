package handover

import (
	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart/carthttp"
	"commerce/cart/wire"
)

// Extend adds the calls that hand carts over to those of the cart, if there is a key for codes.
func (s *Handovers) Extend(api *carthttp.API) {
	if s.carts.Keys != nil {
		api.Handle("POST", "/cart/handover", s.offer)
		api.Handle("POST", "/cart/handover/redeem", s.redeemOrPreview)
	}
}

// offer answers with a code of the guest's cart. The request has no members, so its body is optional.
func (s *Handovers) offer(c *carthttp.Call) (wire.Answer, error) {
	s.carts.Merge(c.Ctx(), c.Visit, "")
	if err := c.OptionalBody(); err != nil {
		return wire.Answer{}, err
	}
	link, err := s.Offer(c.Ctx(), c.Visit)
	return c.ShowLink(link), err
}

// redeemOrPreview shows the cart of a code, or moves it and answers with the cart where it is now.
func (s *Handovers) redeemOrPreview(c *carthttp.Call) (wire.Answer, error) {
	on, members, err := c.ReadChange()
	if err != nil {
		return wire.Answer{}, err
	}
	code, badCode := carthttp.Text(members, "code")
	preview, badPreview := flag(members, "preview")
	keepAgent, badKeepAgent := flag(members, "keep_agent")
	if refusal := problem.Join(badCode, badPreview, badKeepAgent); refusal != nil {
		return wire.Answer{}, refusal
	}
	if preview {
		offered, changed, err := s.Preview(c.Ctx(), c.Visit, code)
		return c.ShowOffer(&offered, changed), err
	}
	key, err := wire.IdempotencyKey(c.Request.Header)
	if err != nil {
		return wire.Answer{}, err
	}
	changed, err := s.Redeem(c.Ctx(), c.Visit, Redemption{Code: code, Key: key, IfMatch: on.IfMatch, KeepAgent: keepAgent})
	return c.ShowChanged(changed, err, nil)
}

func flag(members wire.Object, name string) (bool, *problem.Error) {
	if !members.Has(name) {
		return false, nil
	}
	kind := members[name].Kind()
	if kind != 't' && kind != 'f' {
		return false, problem.New(problem.ValidationFailed, name, textFlag, name)
	}
	return kind == 't', nil
}

var textFlag = locale.Text{
	locale.En: "%s must be true or false.",
	locale.Ar: "يجب أن يكون %s إما true أو false.",
}
