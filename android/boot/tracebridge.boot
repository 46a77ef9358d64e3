sched freq idle disk am wm pm ss dalvik
