"""A log of any size as a sorted graph on disk that training maps into memory: the `.cgraph` folder.

manifest.json            version, counts, how it was split and filtered, fingerprints, SHA-256 and size of every file
users.arrow, items.arrow the external identifiers, one column (user_id, item_id) in one Arrow batch; place = row
train/ valid/ test/      the pairs of each part, as numpy arrays:
    user_offsets.npy     int64 (users + 1): the items of user u are items[user_offsets[u]:user_offsets[u + 1]]
    items.npy            int32, ascending within a user
    item_offsets.npy     int64 (items + 1)
    item_users.npy       int32, the same pairs by item: ascending users within an item

All parts share the rows of users.arrow and items.arrow. Rows follow the sorted identifiers, as everywhere.

layout     names, the manifest, its checks
arrays     arrays that grow on disk
pairs      a part as `Interactions` that reads nothing until it is asked
reading    from a folder to parts
filtering  the smallest rating and the k-core, on disk
dividing   who goes to which part, a block of users at a time
by_item    the second order of the pairs
writing    all of it: from log files to a folder
"""
