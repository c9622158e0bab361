// Package tree knows OpenTSDB's trees: rules that turn the names of a series into a path
// of branches with a leaf, and the bytes that trees are stored in. It knows no store, no
// network and no clock.
//
// The tree table (tsdb-tree) has one column family, t:
//
//	row                              qualifier                    value
//	00 01 (tree id)                  tree                         the definition, JSON
//	00 01                            tree_rule:0:1 (level:order)  a rule, JSON
//	00 01                            branch                       the root, JSON
//	00 01  00 01 a2 46               branch                       branch "lga", JSON
//	00 01  00 01 a2 46  4f 07 aa 47  branch                       branch "host: web01" below it
//	00 01  00 01 a2 46  4f 07 aa 47  leaf:00 00 00 61             leaf "a" of that branch, JSON
//	00 01 01                         tree_collision:TSUID         the TSUID that has the leaf, hex
//	00 01 02                         tree_not_matched:TSUID       the rules without a name, text
//
// Four bytes of a key are the hash (Java's String.hashCode) of a branch's name, big-endian;
// a leaf's qualifier ends with the hash of its name. Names of equal hash at one place fall
// together. OpenTSDB changes a definition or a rule by compare-and-set on the JSON that it
// would write itself, so the JSON here has the same bytes, keys in this order:
//
//	{"name":"Hosts","description":"","notes":"","strictMatch":false,"created":0,"enabled":true,"storeFailures":true}
//	{"type":"TAGK","field":"dc","regex":"","separator":"","description":"","notes":"","level":0,"order":0,"treeId":1,
//	 "customField":"","regexGroupIdx":0,"displayFormat":""}
//	{"path":{"0":"ROOT","1":"lga"},"displayName":"lga"}
//	{"displayName":"a","tsuid":"000001000001000001"}
//
// each on one line. Source: Tree, TreeRule, Branch, Leaf, TreeBuilder.
package tree
