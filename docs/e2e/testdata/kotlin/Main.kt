// Uses the client of docs/mobile.md: offline, after a restart, and while another connection follows.
class Memory(private val items: MutableMap<String, String> = mutableMapOf()) : Store {
    override fun get(name: String) = items[name]
    override fun set(name: String, value: String) { items[name] = value }
    fun copy() = Memory(items.toMutableMap())
}

fun main(args: Array<String>) {
    val (url, old) = args
    val store = Memory()
    val offline = Cart("http://127.0.0.1:1", "pk_demo", store)
    offline.change("/ops", """{"ops": [{"op": "add", "product_id": 2, "qty": 2}]}""")
    offline.change("/ops", """{"ops": [{"op": "edit", "item": "2", "quantity": 9}]}""")
    for (again in 1..2) println("wait ${offline.send { _, _ -> error("nobody answers") }}")

    val cart = Cart(url, "pk_demo", store.copy()) // after a restart
    val read = cart.read()
    println("${read.status}, then ${cart.read(read.etag).status}")
    fun send() { while (true) Thread.sleep(cart.send { _, answer -> println("${answer.status} ${Regex("\"count\":\\d+").find(answer.body)?.value}") } ?: return) }
    send()
    val versions = java.util.concurrent.CopyOnWriteArrayList<Long>() // an event can come before or after the answer
    kotlin.concurrent.thread(isDaemon = true) { cart.follow { versions += it } }
    Thread.sleep(1000)
    cart.change("/ops", """{"ops": [{"op": "clear"}]}""")
    send()
    Thread.sleep(1000)
    println("versions $versions")

    val late = Memory()
    late["outbox"] = "key $old /ops {}\n"
    Cart(url, "pk_demo", late).send { _, answer -> println("${answer.status} after a day") }
}
