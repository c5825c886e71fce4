package cart

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
	CouponMinimum       CouponReason = "minimum" // the subtotal is too small
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
func (c *Coupon) issue(p *Priced, uses Uses, store *store.Store, now time.Time) *CouponIssue {
	switch {
	case c == nil:
		return &CouponIssue{CouponGone, TextNoCoupon.With()}
	case now.Before(c.Starts):
		return &CouponIssue{CouponNotStarted, textCouponNotStarted.With(c.Code)}
	case !c.Expires.IsZero() && !now.Before(c.Expires):
		return &CouponIssue{CouponExpired, textCouponExpired.With(c.Code)}
	case c.MaxUses != nil && uses.All >= *c.MaxUses:
		return &CouponIssue{CouponUsedUp, textCouponUsedUp.With(c.Code)}
	case c.MaxUsesCustomer != nil && uses.Customer >= *c.MaxUsesCustomer:
		return &CouponIssue{CouponUsedUp, textCouponUsedByCustomer.With(c.Code)}
	case !c.appliesToAny(p.Lines):
		return &CouponIssue{CouponNotApplicable, textCouponNotApplicable.With(c.Code)}
	case p.Buyable < c.Minimum:
		return &CouponIssue{CouponMinimum, textCouponMinimum.With(c.Code, money.Price{Amount: c.Minimum, Currency: store.Currency})}
	}
	return nil
}

// Known reports whether a shopper may learn that the coupon exists: whether there is one, and it has started.
func (c *Coupon) Known(now time.Time) bool { return c != nil && !now.Before(c.Starts) }

// appliesToAny reports whether the coupon applies to a line whose product still exists. A
// coupon for all products applies to an empty cart too.
func (c *Coupon) appliesToAny(lines []PricedLine) bool {
	return c.Products == nil || find(lines, func(l *PricedLine) bool {
		return l.Product != nil && c.applies(l.ID.Product())
	}) != nil
}

// RefuseCoupon returns why a coupon cannot be redeemed for a priced cart, with the reason
// as data; nil when it can. A nil coupon is one that the store does not have. A coupon that has not
// started gets the same answer, so that guessing does not find it. member is the request's member
// that an error names.
func RefuseCoupon(c *Coupon, p *Priced, uses Uses, store *store.Store, now time.Time, member string) *problem.Error {
	issue := c.issue(p, uses, store, now)
	if issue == nil {
		return nil
	}
	if issue.Reason == CouponNotStarted {
		issue = (*Coupon)(nil).issue(p, uses, store, now)
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
	textCouponNotApplicable = locale.Text{
		locale.En: "Coupon %s does not apply to any item in the cart.",
		locale.Ar: "لا تنطبق القسيمة %s على أي عنصر في السلة.",
	}
)
