package service

import (
	"context"

	"commerce/cart"
	"commerce/cart/price"
	"commerce/cart/redisstore"
)

// Unpriced is a cart with the products of its lines. Its buyer may be where the request comes from.
type Unpriced struct {
	cart.Cart
	Products  map[int64]*cart.Product
	Automatic []*price.Coupon // of the store; nil for a cart without lines
}

// Look returns the cart without its prices. It merges a waiting guest's cart first; if that fails,
// it returns the cart without it. It renews the cart's TTL.
func (s *Carts) Look(ctx context.Context, v *Visit) (Unpriced, error) {
	stored, err := s.Load(ctx, v)
	if err != nil {
		return Unpriced{}, err
	}
	return s.withProducts(ctx, v, stored.Cart)
}

// Read is Look and Price.
func (s *Carts) Read(ctx context.Context, v *Visit) (price.Priced, error) {
	c, err := s.Look(ctx, v)
	if err != nil {
		return price.Priced{}, err
	}
	return s.Price(ctx, v, c)
}

// Count returns the sum of quantities and the number of lines. It merges like Read.
func (s *Carts) Count(ctx context.Context, v *Visit) (quantity, lines int64, err error) {
	stored, err := s.Load(ctx, v)
	return stored.Count(), int64(len(stored.Lines)), err
}

// Validate returns what prevents checkout, and warnings. It merges like Read.
func (s *Carts) Validate(ctx context.Context, v *Visit) (price.Validation, error) {
	priced, err := s.Read(ctx, v)
	if err != nil {
		return price.Validation{}, err
	}
	validation := price.Validate(&priced)
	s.Events.Validated(&validation)
	return validation, nil
}

// Load reads the cart in one round trip, and again only after a merge.
func (s *Carts) Load(ctx context.Context, v *Visit) (redisstore.Stored, error) {
	if v.Fresh {
		return redisstore.Stored{}, nil
	}
	stored, found, err := s.loadWithGuest(ctx, v)
	if err != nil || v.ReadOnly {
		return stored, err
	}
	pending := stored.Pending
	if len(pending) > 0 && s.Redis.AwaitsReplicas(ctx, v.own) {
		// What is merged already waits until replicas can confirm it.
		found.Claimed = found.Claimed && !(v.logsIn() && pending.AppliedFrom(v.guest.TokenDigest()))
		pending = pending.Unapplied()
	}
	if len(pending) == 0 && !found.Mergeable() {
		return stored, nil
	}
	_ = s.resume(ctx, v, pending)
	if found.Mergeable() {
		_ = s.merge(ctx, v, found)
	}
	return s.loadOwn(ctx, v)
}

func (s *Carts) loadWithGuest(ctx context.Context, v *Visit) (redisstore.Stored, redisstore.GuestCart, error) {
	if !v.logsIn() || v.ReadOnly {
		stored, err := s.loadOwn(ctx, v)
		return stored, redisstore.GuestCart{}, err
	}
	ctx, trip := v.budget.spend(ctx, 1)
	defer trip.done()
	stored, found, err := s.Redis.LoadWithGuest(ctx, v.budget.left/2, v.own, v.guest)
	v.learn(stored)
	return stored, found, err
}

func (s *Carts) loadOwn(ctx context.Context, v *Visit) (redisstore.Stored, error) {
	ctx, trip := v.budget.spend(ctx, 1)
	defer trip.done()
	stored, err := s.Redis.Load(ctx, v.own)
	v.learn(stored)
	return stored, err
}

// Recall learns of the latest merge, for a refusal that did not read the cart.
func (s *Carts) Recall(ctx context.Context, v *Visit) {
	if v.logsIn() && v.Merge() == nil {
		_, _ = s.loadOwn(ctx, v) // without Redis, the refusal stands alone
	}
}

// PriceCart loads the products of a cart and prices it.
func (s *Carts) PriceCart(ctx context.Context, v *Visit, c cart.Cart) (price.Priced, error) {
	with, err := s.withProducts(ctx, v, c)
	if err != nil {
		return price.Priced{}, err
	}
	return s.Price(ctx, v, with)
}

func (s *Carts) withProducts(ctx context.Context, v *Visit, c cart.Cart) (Unpriced, error) {
	with := Unpriced{Cart: c}
	with.Buyer = c.Buyer.Or(v.Country)
	if len(c.Lines) == 0 {
		return with, nil
	}
	var err error
	if with.Products, err = s.Catalog.Products(ctx, v.Store.ID, c.ProductIDs()); err != nil {
		return Unpriced{}, cart.Unavailable("products", err)
	}
	if with.Automatic, err = s.Coupons.Automatic(ctx, v.Store.ID); err != nil {
		return Unpriced{}, cart.Unavailable("coupons", err)
	}
	return with, nil
}

// Price prices a cart and applies its coupon.
func (s *Carts) Price(ctx context.Context, v *Visit, c Unpriced) (price.Priced, error) {
	priced := price.Of(c.Cart, v.Store, c.Products, s.Limits)
	return priced, s.redeem(ctx, v, &priced, c.Automatic)
}

// priceable fails early when the cart could not be priced after a change without a key: the
// catalog is unreachable, and the cart holds a product that is not cached. Otherwise the change
// would be applied, answered 503, and a retry would add twice.
func (s *Carts) priceable(ctx context.Context, v *Visit, on Conditions) error {
	if on.Key != "" || v.Fresh || s.Catalog.Reachable() {
		return nil
	}
	stored, _, err := s.loadWithGuest(ctx, v)
	if err != nil {
		return err
	}
	_, err = s.PriceCart(ctx, v, stored.Cart)
	return err
}

// product returns one product of the request's store; nil when the store does not have it.
func (s *Carts) product(ctx context.Context, v *Visit, id int64) (*cart.Product, error) {
	products, err := s.Catalog.Products(ctx, v.Store.ID, []int64{id})
	if err != nil {
		return nil, cart.Unavailable("products", err)
	}
	return products[id], nil
}
