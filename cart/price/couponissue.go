package price

import (
	"time"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/auth/store"
	"commerce/cart/money"
)

// CouponReason is the stable word for why a coupon takes nothing off, for programs.
type CouponReason string

// The reasons, in the order in which they are checked: a coupon has the first one. The minimum is last, so
// that nobody adds items for a coupon that cannot apply to them.
const (
	CouponGone          CouponReason = "gone" // the store does not have it
	CouponNotStarted    CouponReason = "not_started"
	CouponExpired       CouponReason = "expired"
	CouponUsedUp        CouponReason = "used_up" // by all customers together, or by this one
	CouponNotApplicable CouponReason = "not_applicable"
	CouponMinimum       CouponReason = "minimum"      // the subtotal or the quantity is too small
	CouponNotCombined   CouponReason = "not_combined" // others are applied, with which it does not combine

	CouponTooMany CouponReason = "too_many" // of a refused code: the cart holds MaxCodes
)

// CouponIssue is why a coupon takes nothing off a cart now.
type CouponIssue struct {
	Reason   CouponReason
	Sentence locale.Sentence
}

func (i *CouponIssue) Code() problem.Code {
	if i.Reason == CouponMinimum {
		return problem.CouponMinimum
	}
	return problem.CouponInvalid
}

// issue returns why the coupon takes nothing off a priced cart; nil when it is valid. A nil
// coupon is one that the store does not have.
func (c *Coupon) issue(p *Priced, automatic bool, uses Uses, store *store.Store, now time.Time) *CouponIssue {
	if reason := c.reason(p, automatic, uses, now); reason != "" {
		return &CouponIssue{reason, c.sentence(reason, p, uses, store)}
	}
	return nil
}

// reason is that of issue; "" for none.
func (c *Coupon) reason(p *Priced, automatic bool, uses Uses, now time.Time) CouponReason {
	switch {
	case c == nil || c.Automatic != automatic:
		return CouponGone
	case now.Before(c.Starts):
		return CouponNotStarted
	case c.expired(now):
		return CouponExpired
	case c.usedUp(uses), c.usedByCustomer(uses):
		return CouponUsedUp
	case c.Products != nil && !c.appliesToAny(p.Lines): // one for all products applies to an empty cart too
		return CouponNotApplicable
	case p.Buyable < c.Minimum, p.pieces(c) < c.MinQuantity:
		return CouponMinimum
	}
	return ""
}

// AsksUses reports whether it depends on the uses of an automatic coupon whether it counts, or is offered.
func (p *Priced) AsksUses(c *Coupon, now time.Time) bool {
	if c.MaxUses == nil && c.MaxUsesCustomer == nil {
		return false
	}
	reason := c.reason(p, true, Uses{}, now)
	return reason == "" || reason == CouponMinimum
}

func (c *Coupon) expired(now time.Time) bool { return !c.Expires.IsZero() && !now.Before(c.Expires) }

func (c *Coupon) usedUp(uses Uses) bool { return c.MaxUses != nil && uses.All >= *c.MaxUses }

func (c *Coupon) usedByCustomer(uses Uses) bool {
	return c.MaxUsesCustomer != nil && uses.Customer >= *c.MaxUsesCustomer
}

func (c *Coupon) sentence(r CouponReason, p *Priced, uses Uses, store *store.Store) locale.Sentence {
	switch {
	case r == CouponGone:
		return TextNoCoupon.With()
	case r == CouponNotStarted:
		return textCouponNotStarted.With(c.Code)
	case r == CouponExpired:
		return textCouponExpired.With(c.Code)
	case r == CouponUsedUp && c.usedUp(uses):
		return textCouponUsedUp.With(c.Code)
	case r == CouponUsedUp:
		return textCouponUsedByCustomer.With(c.Code)
	case r == CouponNotApplicable:
		return textCouponNotApplicable.With(c.Code)
	case p.Buyable < c.Minimum:
		return textCouponMinimum.With(c.Code, money.Price{Amount: c.Minimum, Currency: store.Currency})
	}
	return textCouponQuantity.With(c.Code, c.MinQuantity)
}

// Known reports whether a shopper may learn that the coupon exists: whether there is one that needs its code, and it has started.
func (c *Coupon) Known(now time.Time) bool { return c != nil && !c.Automatic && !now.Before(c.Starts) }

// appliesToAny reports whether the coupon applies to a line whose product still exists.
func (c *Coupon) appliesToAny(lines []Line) bool {
	for i := range lines {
		if c.applies(&lines[i]) {
			return true
		}
	}
	return false
}

// RefuseCoupon returns why a coupon cannot be redeemed for a priced cart, with the reason
// as data; nil when it can. A nil coupon is one that the store does not have. A coupon that has not
// started gets the same answer, so that guessing does not find it. member is the request's member
// that an error names.
func RefuseCoupon(c *Coupon, p *Priced, uses Uses, store *store.Store, now time.Time, member string) *problem.Error {
	issue := c.issue(p, false, uses, store, now)
	if issue == nil {
		return nil
	}
	if issue.Reason == CouponNotStarted {
		issue = (*Coupon)(nil).issue(p, false, uses, store, now)
	}
	return &problem.Error{
		Code: issue.Code(), Data: issue.Reason,
		Faults: []problem.Fault{{Member: member, Sentence: issue.Sentence}},
	}
}

// TextNoCoupon is about a code that no coupon of the store has.
var TextNoCoupon = locale.Text{
	locale.En: "This coupon does not exist.",
	locale.Ar: "هذه القسيمة غير موجودة.",
}

var (
	textCouponGone = locale.Text{
		locale.En: "Coupon %s does not exist.",
		locale.Ar: "القسيمة %s غير موجودة.",
	}
	textCouponNotStarted = locale.Text{
		locale.En: "Coupon %s is not valid yet.",
		locale.Ar: "لم يبدأ سريان القسيمة %s بعد.",
	}
	textCouponExpired = locale.Text{
		locale.En: "Coupon %s has expired.",
		locale.Ar: "انتهت صلاحية القسيمة %s.",
	}
	textCouponUsedUp = locale.Text{
		locale.En: "Coupon %s has been used up.",
		locale.Ar: "استُنفدت مرات استخدام القسيمة %s.",
	}
	textCouponUsedByCustomer = locale.Text{
		locale.En: "You have already used coupon %s as often as it allows.",
		locale.Ar: "لقد استخدمت القسيمة %s بعدد المرات المسموح به.",
	}
	textCouponMinimum = locale.Text{
		locale.En: "Coupon %s requires a subtotal of at least %s, not counting items that cannot be bought.",
		locale.Ar: "تتطلب القسيمة %s مجموعًا فرعيًا لا يقل عن %s، ولا تُحتسب فيه العناصر التي لا يمكن شراؤها.",
	}
	textCouponQuantity = locale.Text{
		locale.En: "Coupon %s requires a quantity of at least %d of what it applies to, not counting items that cannot be bought.",
		locale.Ar: "تتطلب القسيمة %s كمية لا تقل عن %d مما تنطبق عليه، ولا تُحتسب فيها العناصر التي لا يمكن شراؤها.",
	}
	textCouponNotCombined = locale.Text{
		locale.En: "Coupon %s does not combine with the discounts that are applied.",
		locale.Ar: "لا تُجمع القسيمة %s مع الخصومات المطبّقة.",
	}
	textCouponDoesNotJoin = locale.Text{
		locale.En: "Coupon %s does not combine with those before it.",
		locale.Ar: "لا تُجمع القسيمة %s مع ما قبلها.",
	}
	textCouponTooMany = locale.Text{
		locale.En: "A cart holds at most %d coupons. Please remove one first.",
		locale.Ar: "لا تتسع السلة لأكثر من %d قسائم. يُرجى إزالة واحدة أولًا.",
	}
	textCouponNotApplicable = locale.Text{
		locale.En: "Coupon %s does not apply to any item in the cart.",
		locale.Ar: "لا تنطبق القسيمة %s على أي عنصر في السلة.",
	}
)
