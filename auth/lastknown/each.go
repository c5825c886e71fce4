package lastknown

import "context"

// Each makes a Config.Source from a function that loads one key. load returns false
// if the key does not exist. Several keys take one call each, one after the other.
func Each[K comparable, V any](load func(context.Context, K) (V, bool, error)) func(context.Context, []K) (map[K]V, error) {
	return func(ctx context.Context, keys []K) (map[K]V, error) {
		values := make(map[K]V, len(keys))
		for _, key := range keys {
			value, exists, err := load(ctx, key)
			if err != nil {
				return nil, err
			}
			if exists {
				values[key] = value
			}
		}
		return values, nil
	}
}
