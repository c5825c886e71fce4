package cart

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"io"
	"log/slog"
	"time"

	"commerce/auth"
	"commerce/auth/store"
)

// Service answers every cart call. Prices, stock and status come from the catalogue
// at each call; Redis keeps the rest.
type Service struct {
	redis    *Redis
	catalog  Catalog
	coupons  Coupons
	limits   Limits
	strategy Strategy
	budget   time.Duration
	now      func() time.Time
	rand     io.Reader
	log      *slog.Logger
}

// Config is what a Service needs.
type Config struct {
	Redis    *Redis
	Catalog  Catalog
	Coupons  Coupons
	Limits   Limits           // as Redis has them
	Strategy Strategy         // of merges; default Sum
	Budget   time.Duration    // for Redis, of each request; default 200 ms
	Now      func() time.Time // default time.Now
	Rand     io.Reader        // for cart ids and tokens; default crypto/rand
	Log      *slog.Logger     // for merges that must wait; default slog.Default
}

// NewService fills in the defaults.
func NewService(c Config) *Service {
	s := &Service{
		redis: c.Redis, catalog: c.Catalog, coupons: c.Coupons, limits: c.Limits, strategy: c.Strategy,
		budget: c.Budget, now: c.Now, rand: c.Rand, log: c.Log,
	}
	if s.strategy == "" {
		s.strategy = Sum
	}
	if s.budget == 0 {
		s.budget = 200 * time.Millisecond
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.rand == nil {
		s.rand = rand.Reader
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	return s
}

// mergeBudget is the time that driving merges may take beyond a request's own: they
// are several trips, and may wait for replicas.
func (s *Service) mergeBudget() time.Duration { return 5 * s.budget }

// Shopper is whose cart a call is about.
type Shopper struct {
	Store *store.Store
	Token auth.CartToken // opens the guest's cart; "" for a customer's
	Fresh bool           // Token was made for this very call: nothing can lie under it

	ref   Ref
	guest Ref // a guest's cart that came along with a customer; zero for none
	time  *budget

	unmerged bool   // what lies in guest could not be asked, or not be merged
	applied  string // fingerprint of the change that guest knows under the request's key; "" for none
}

// Shopper says whose cart a caller's calls are about. A guest without a usable
// token gets a new one.
func (s *Service) Shopper(c auth.Caller) (Shopper, error) {
	sh := Shopper{Store: c.Store, time: newBudget(s.budget)}
	if c.Customer != "" {
		sh.ref = CustomerRef(c.Store.ID, c.Customer)
		if c.Token != "" {
			sh.guest = GuestRef(c.Store.ID, c.Token)
		}
		return sh, nil
	}
	sh.Token = c.Token
	if sh.Token == "" {
		token, err := auth.NewCartToken(s.rand)
		if err != nil {
			return Shopper{}, err
		}
		sh.Token, sh.Fresh = token, true
	}
	sh.ref = GuestRef(c.Store.ID, sh.Token)
	return sh, nil
}

// Read returns the cart, after a merge if one waits.
func (s *Service) Read(ctx context.Context, sh Shopper) (Priced, *MergeReport, error) {
	cart, report, err := s.load(ctx, sh)
	if err != nil {
		return Priced{}, report, err
	}
	priced, err := s.price(ctx, sh, cart)
	return priced, report, err
}

// Count returns the sum of quantities and the number of lines.
func (s *Service) Count(ctx context.Context, sh Shopper) (quantity, lines int64, report *MergeReport, err error) {
	cart, report, err := s.load(ctx, sh)
	return cart.Count(), int64(len(cart.Lines)), report, err
}

// Validate returns the cart and what stands in the way of its checkout.
func (s *Service) Validate(ctx context.Context, sh Shopper) (Validation, *MergeReport, error) {
	priced, report, err := s.Read(ctx, sh)
	if err != nil {
		return Validation{}, report, err
	}
	return validate(&priced), report, nil
}

// load reads the cart in one round trip, and again only after a merge.
func (s *Service) load(ctx context.Context, sh Shopper) (Cart, *MergeReport, error) {
	if sh.Fresh {
		return Cart{}, nil, nil
	}
	cart, guest, err := s.loadOnce(ctx, sh)
	if err != nil || (len(cart.unfinished) == 0 && !guest.any()) {
		return cart, nil, err
	}
	report, _ := s.tryResume(ctx, sh, cart.unfinished)
	if guest.any() {
		merged, _ := s.tryMerge(ctx, sh, guest)
		report = report.plus(merged)
	}
	sh.time.renew()
	cart, _, err = s.loadOnce(ctx, sh)
	return cart, report, err
}

func (s *Service) loadOnce(ctx context.Context, sh Shopper) (Cart, waiting, error) {
	ctx, done := sh.time.spend(ctx)
	defer done()
	if sh.guest == (Ref{}) {
		cart, err := s.redis.Load(ctx, sh.ref, s.now())
		return cart, waiting{}, err
	}
	quick, cancel := context.WithTimeout(ctx, sh.time.left/2)
	defer cancel()
	return s.redis.loadBoth(ctx, quick, sh.ref, sh.guest, s.now())
}

// MergeFirst takes in what waits under the shopper's token before a change is even
// looked at. When that cannot be done, the change is made without, unless it has an
// idempotency key (see change). key is that key's digest, "" for none.
func (s *Service) MergeFirst(ctx context.Context, sh *Shopper, key string) *MergeReport {
	if sh.guest == (Ref{}) {
		return nil
	}
	quick, done := sh.time.spendHalf(ctx)
	guest, err := s.redis.guestHolds(quick, sh.ref, sh.guest, key, s.now())
	done()
	if err != nil {
		s.warn(ctx, err)
		sh.unmerged = true
		return nil
	}
	sh.applied = guest.applied
	if !guest.any() {
		return nil
	}
	report, err := s.tryMerge(ctx, *sh, guest)
	sh.unmerged = err != nil
	sh.time.renew()
	return report
}

// tryMerge and tryResume drive a merge as far as it goes now, in a time of its own. What
// is left of it a later request finishes, so the caller's own request goes on. A client
// that goes away does not stop a merge halfway.
func (s *Service) tryMerge(ctx context.Context, sh Shopper, w waiting) (*MergeReport, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.mergeBudget())
	defer cancel()
	report, err := s.merge(ctx, sh, w)
	s.warn(ctx, err)
	return report, err
}

func (s *Service) tryResume(ctx context.Context, sh Shopper, unfinished notes) (*MergeReport, notes) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.mergeBudget())
	defer cancel()
	report, waiting, err := s.resume(ctx, sh, unfinished)
	s.warn(ctx, err)
	return report, waiting
}

// warn logs why a merge waits. errCartFull is not logged: the answer reports it.
func (s *Service) warn(ctx context.Context, err error) {
	if err != nil && !errors.Is(err, errCartFull) {
		s.log.WarnContext(ctx, "merge postponed to a later request", "err", err)
	}
}

// Changed is the cart after a change.
type Changed struct {
	Priced
	Durability string       // confirmed or unconfirmed; "" where nobody waits for replicas
	Replayed   bool         // the change had been made before; nothing was changed now
	Merge      *MergeReport // of a merge that an earlier request had left unfinished; nil for none
}

// Add puts a product in. All-or-nothing: a refusal changes nothing.
func (s *Service) Add(ctx context.Context, sh Shopper, on Conditions, a Addition) (Changed, error) {
	product, err := s.product(ctx, sh, a.ProductID)
	if err != nil {
		return Changed{}, err
	}
	if on.Key == "" {
		if err := s.showable(ctx, sh); err != nil {
			return Changed{}, err
		}
	}
	line, refusal := resolve(a, product, s.limits)
	return s.perform(ctx, sh, on, refusal, a.quantityMember, product, func(ctx context.Context, on Conditions) (outcome, error) {
		return s.redis.add(ctx, sh.ref, on, line)
	})
}

// Refuse returns the refusal of a change whose members cannot be read, unless the
// terms it came with are refused first.
func (s *Service) Refuse(ctx context.Context, sh Shopper, on Conditions, refusal error) error {
	if on.Key == "" && on.IfMatch == "" {
		return refusal
	}
	o, err := s.change(ctx, sh, on, s.judging(sh))
	if err != nil || o.word == applied || o.word == replayed {
		return o.merged.beside(refusal)
	}
	_, err = s.conclude(ctx, sh, on, o, "", nil)
	return err
}

// showable refuses, before anything is changed, what could be changed but not shown:
// with the catalogue out of reach, a cart with a product that nobody here has seen. A
// shopper who is told 503 adds again, and without a key that would count twice.
func (s *Service) showable(ctx context.Context, sh Shopper) error {
	if sh.Fresh || s.catalog.Reachable() {
		return nil
	}
	cart, _, err := s.loadOnce(ctx, sh)
	if err != nil {
		return err
	}
	_, err = s.price(ctx, sh, cart)
	return err
}

// SetQuantity sets how many of a line are wanted; 0 removes it. member is what the
// client called the quantity.
func (s *Service) SetQuantity(ctx context.Context, sh Shopper, on Conditions, item LineID, quantity int64, member string) (Changed, error) {
	var product *Product
	var never Code
	if quantity > 0 && item != "" {
		var err error
		if product, err = s.product(ctx, sh, item.Product()); err != nil {
			return Changed{}, err
		}
		switch {
		case product == nil:
			never = CodeProductNotFound
		case !product.Active:
			never = CodeProductInactive
		}
	}
	return s.perform(ctx, sh, on, nil, member, product, func(ctx context.Context, on Conditions) (outcome, error) {
		return s.redis.set(ctx, sh.ref, on, item, quantity, boundsOf(product, s.limits), never)
	})
}

// Remove takes a line out. One that is not there is as good as removed.
func (s *Service) Remove(ctx context.Context, sh Shopper, on Conditions, item LineID) (Changed, error) {
	return s.perform(ctx, sh, on, nil, "", nil, func(ctx context.Context, on Conditions) (outcome, error) {
		return s.redis.remove(ctx, sh.ref, on, item)
	})
}

// Clear takes everything out.
func (s *Service) Clear(ctx context.Context, sh Shopper, on Conditions) (Changed, error) {
	return s.perform(ctx, sh, on, nil, "", nil, func(ctx context.Context, on Conditions) (outcome, error) {
		return s.redis.clear(ctx, sh.ref, on)
	})
}

// RedeemCoupon gives the cart a coupon, in the place of another. member is what the
// client called the code.
func (s *Service) RedeemCoupon(ctx context.Context, sh Shopper, on Conditions, code, member string) (Changed, error) {
	code = NormalCouponCode(code)
	coupon, err := s.coupon(ctx, sh, code)
	if err != nil {
		return Changed{}, err
	}
	priced, report, err := s.Read(ctx, sh)
	if err != nil {
		return Changed{}, report.beside(err)
	}
	refusal := judgeCoupon(coupon, sh.Store, priced.buyable, s.now(), member)
	changed, err := s.perform(ctx, sh, on, refusal, member, nil, func(ctx context.Context, on Conditions) (outcome, error) {
		return s.redis.coupon(ctx, sh.ref, on, code)
	})
	changed.Merge = report.plus(changed.Merge)
	return changed, report.beside(err)
}

// DropCoupon takes the coupon away.
func (s *Service) DropCoupon(ctx context.Context, sh Shopper, on Conditions) (Changed, error) {
	return s.perform(ctx, sh, on, nil, "", nil, func(ctx context.Context, on Conditions) (outcome, error) {
		return s.redis.coupon(ctx, sh.ref, on, "")
	})
}

// attempt sends one change to Redis, on the terms that are given.
type attempt func(context.Context, Conditions) (outcome, error)

// judging changes nothing: it only says whether a change that is refused anyway is a
// repeat, or comes too late, which counts before its own refusal.
func (s *Service) judging(sh Shopper) attempt {
	return func(ctx context.Context, on Conditions) (outcome, error) {
		return s.redis.judge(ctx, sh.ref, on)
	}
}

// perform makes a change and returns the cart as it is shown then. A refusal that is
// known beforehand (nil for none) is judged instead of tried. member and p are what
// a refusal by the cart itself names: the request's member and the product, "" and
// nil for neither.
func (s *Service) perform(ctx context.Context, sh Shopper, on Conditions, known *Error, member string, p *Product, try attempt) (Changed, error) {
	if known != nil {
		try = s.judging(sh)
	}
	o, err := s.change(ctx, sh, on, try)
	switch {
	case err != nil:
		return Changed{}, err
	case known != nil && o.word == applied:
		return Changed{}, o.merged.beside(known)
	}
	return s.conclude(ctx, sh, on, o, member, p)
}

// change runs a change, driving an unfinished merge to its end first. One that
// cannot be driven now is passed by: the change is made, the merge waits. But the first
// try of a change with an idempotency key may lie in a guest's cart that is not merged
// yet, or that another customer has taken, so the key is looked up there before.
func (s *Service) change(ctx context.Context, sh Shopper, on Conditions, try attempt) (outcome, error) {
	on.Now, on.CartID = s.now(), s.newCartID()
	var report *MergeReport
	var unmerged []Ref
	if sh.unmerged && sh.applied == "" {
		unmerged = []Ref{sh.guest}
	}
	if sh.unmerged || sh.applied == on.Fingerprint { // another fingerprint is no matter of a cart that has gone
		if o, err := s.repeats(ctx, sh, on, sh.applied); err != nil || o.word != "" {
			return o, err
		}
	}
	for ctx.Err() == nil {
		if o, err := s.repeatElsewhere(ctx, sh, on, unmerged); err != nil || o.word != "" {
			o.merged = report
			return o, report.beside(err)
		}
		quick, done := sh.time.spend(ctx)
		o, err := try(quick, on)
		done()
		if err != nil || o.word != resume {
			o.merged = report
			return o, report.beside(err)
		}
		resumed, waiting := s.tryResume(ctx, sh, o.cart.unfinished)
		report = report.plus(resumed)
		on.passBy, unmerged = o.cart.unfinished.members(), nil
		for _, n := range waiting {
			unmerged = append(unmerged, sh.ref.guestBeside(n.guest))
		}
		sh.time.renew()
	}
	return outcome{}, report.beside(unavailable("change cart", ctx.Err()))
}

// repeatElsewhere looks for a change's idempotency key in guests' carts that are still
// to be merged. The outcome's word is "" when none of them knows it.
func (s *Service) repeatElsewhere(ctx context.Context, sh Shopper, on Conditions, guests []Ref) (outcome, error) {
	if on.Key == "" {
		return outcome{}, nil
	}
	for _, guest := range guests {
		quick, done := sh.time.spendHalf(ctx)
		applied, err := s.redis.appliedUnder(quick, sh.ref, guest, on.Key)
		done()
		if err != nil {
			return outcome{}, err
		}
		if o, err := s.repeats(ctx, sh, on, applied); err != nil || o.word != "" {
			return o, err
		}
	}
	return outcome{}, nil
}

// repeats says whether a change repeats one with this fingerprint, which a guest's cart
// has applied under the same key. The outcome's word is "" when there was none.
func (s *Service) repeats(ctx context.Context, sh Shopper, on Conditions, fingerprint string) (outcome, error) {
	word := replayed
	switch fingerprint {
	case "":
		return outcome{}, nil
	case on.Fingerprint:
	default:
		word = string(CodeIdempotencyConflict)
	}
	cart, err := s.loadOwn(ctx, sh)
	return outcome{word: word, cart: cart}, err
}

func (s *Service) loadOwn(ctx context.Context, sh Shopper) (Cart, error) {
	ctx, done := sh.time.spend(ctx)
	defer done()
	return s.redis.Load(ctx, sh.ref, s.now())
}

// conclude turns an outcome into the cart as it is shown, or into the refusal.
func (s *Service) conclude(ctx context.Context, sh Shopper, on Conditions, o outcome, member string, p *Product) (Changed, error) {
	switch o.word {
	case applied, replayed:
		priced, err := s.price(ctx, sh, o.cart)
		if err != nil && o.word == applied && on.Key == "" {
			err = outcomeUnknown("show cart", err) // it was made, and to repeat it would count twice
		}
		return Changed{
			Priced: priced, Durability: o.durability, Replayed: o.word == replayed, Merge: o.merged,
		}, o.merged.beside(err)
	case string(CodeVersionMismatch):
		priced, err := s.price(ctx, sh, o.cart)
		if err != nil {
			return Changed{}, o.merged.beside(err)
		}
		e := refuse(CodeVersionMismatch, "If-Match", sayVersionMismatch)
		e.current = &priced
		return Changed{}, o.merged.beside(e)
	}
	return Changed{}, o.merged.beside(s.refusalOf(o, member, p))
}

// refusalOf words what a script refused.
func (s *Service) refusalOf(o outcome, member string, p *Product) *Error {
	name := ""
	if p != nil {
		name = p.Name
	}
	switch code := Code(o.word); code {
	case CodeIdempotencyConflict:
		return refuse(code, "Idempotency-Key", sayKeyReused)
	case CodeItemNotFound:
		return refuse(code, "", sayItemNotFound)
	case CodeProductNotFound:
		return refuse(code, member, sayNoProduct)
	case CodeProductInactive:
		return refuse(code, member, sayInactive, name)
	case CodeOutOfStock:
		return refuse(code, member, sayOutOfStock, name)
	case CodeInsufficientStock:
		if o.b > 0 {
			return refuse(code, member, sayOnlySomeHeld, o.a, name, o.b)
		}
		return refuse(code, member, sayOnlySome, o.a, name)
	case CodeQuantityOutOfRange:
		return refuse(code, member, sayOutOfRange, o.a, o.b, name)
	case CodeCartFull:
		if o.b == 1 {
			return refuse(code, "", sayTooMuchText, s.limits.CartText)
		}
		return refuse(code, "", sayTooManyLines, s.limits.Lines)
	}
	return unavailable("change cart", errLayout)
}

// product is one product of the shopper's store; nil when there is none such.
func (s *Service) product(ctx context.Context, sh Shopper, id int64) (*Product, error) {
	products, err := s.catalog.Products(ctx, sh.Store.ID, []int64{id})
	if err != nil {
		return nil, unavailable("products", err)
	}
	return products[id], nil
}

func (s *Service) price(ctx context.Context, sh Shopper, c Cart) (Priced, error) {
	var products map[int64]*Product
	if len(c.Lines) > 0 {
		var err error
		if products, err = s.catalog.Products(ctx, sh.Store.ID, c.ProductIDs()); err != nil {
			return Priced{}, unavailable("products", err)
		}
	}
	priced := price(c, sh.Store, products, s.limits)
	if c.Coupon != "" {
		coupon, err := s.coupon(ctx, sh, c.Coupon)
		if err != nil {
			return Priced{}, err
		}
		priced.redeem(coupon, sh.Store, s.now())
	}
	return priced, nil
}

// coupon is one coupon of the shopper's store; nil when there is none such.
func (s *Service) coupon(ctx context.Context, sh Shopper, code string) (*Coupon, error) {
	coupon, err := s.coupons.Coupon(ctx, sh.Store.ID, code)
	if err != nil {
		return nil, unavailable("coupon", err)
	}
	return coupon, nil
}

// newCartID is 100 random bits, so that no two carts ever share one, without the
// signs that an ETag sets around it.
func (s *Service) newCartID() string {
	var bits [13]byte
	_, _ = io.ReadFull(s.rand, bits[:]) // crypto/rand does not fail
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(bits[:])[:20]
}
