package connect

import "github.com/redis/go-redis/v9"

// AddHook adds a hook to a client that is not used yet. On a cluster, the hook is called for
// each attempt at a node, otherwise once for each command.
func AddHook(client redis.UniversalClient, hook redis.Hook) {
	if cluster, ok := client.(*redis.ClusterClient); ok {
		cluster.OnNewNode(func(node *redis.Client) { node.AddHook(hook) })
		return
	}
	client.AddHook(hook)
}
