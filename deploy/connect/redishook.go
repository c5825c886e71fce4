package connect

import "github.com/redis/go-redis/v9"

// AddHook adds a hook to a client that is not used yet. On a cluster, the hook is called for
// each attempt at a node, otherwise once for each command. If Redis returned the client, the hook
// gets errors as a cause.Failure.
func AddHook(client redis.UniversalClient, hook redis.Hook) {
	switch client := client.(type) {
	case *redis.ClusterClient:
		client.OnNewNode(func(node *redis.Client) { addHook(node, hook) })
	case *redis.Client:
		addHook(client, hook)
	}
}

// addHook adds failures again, because the hook that was added last gets an error first.
func addHook(client *redis.Client, hook redis.Hook) {
	client.AddHook(hook)
	if tries, ours := client.Options().Limiter.(*tries); ours {
		client.AddHook(failures{tries})
	}
}
