"""Measures the means that ``E5Embedder`` takes away, on everyday sentences of our own.

    python tools/e5_means.py            writes src/memoryspace/embedding/e5_means.npy
    python tools/e5_means.py --check    only shows how like unrelated texts are, before and after

Whoever changes a sentence raises the number in ``E5Embedder.name``: it makes another vector space.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from memoryspace.embedding import E5Embedder
from memoryspace.embedding.centring import FILE, SCRIPTS

SAID = {
    "latin": """
        My sister is moving into a bigger flat next month.
        I usually take the bus to work because parking is so expensive.
        We had pasta with mushrooms for dinner last night.
        The meeting was moved to Thursday afternoon.
        I'm learning to play the guitar, but my fingers still hurt.
        He forgot his umbrella and came home soaked.
        Thanks, that worked perfectly!
        You could try turning it off and on again first.
        Our flight to Lisbon was delayed by three hours.
        The dentist said I need to come back in half a year.
        She has worked as a nurse for almost twenty years.
        I can't stand the smell of fish in the kitchen.
        They planted tomatoes and basil behind the house.
        Please remind me to call the bank tomorrow morning.
        The new phone takes much better pictures in the dark.
        I finished the book over the weekend, and the ending surprised me.
        Their dog barks whenever somebody rings the bell.
        It rained so hard that the cellar was flooded.
        For the report, use the figures of the second quarter.
        My grandfather used to repair clocks.
        The museum is closed on Mondays.
        I'm trying to sleep more and to drink less coffee.
        Here are three things to keep in mind before you sign the contract.
        The children built a castle out of cardboard boxes.
        My knee hurts when I walk down the stairs.
        Sure, here is a shorter version of your letter.
        We paid far too much for that hotel.
        The function returns a list of all users sorted by name.
        He sold his motorbike and bought a small boat.
        I prefer tea in the afternoon.
        The team lost the final by one point.
        My password manager stopped filling in forms after the update.
        We got engaged in spring, and the wedding is in September.
        A healthy breakfast may include oats, fruit and yoghurt.
        She studies history at the university.
        The washing machine makes a strange noise when it spins.
        I have saved about half of the money for the trip.
        You are right, I made a mistake in the second step.
        Traffic was terrible because of the roadworks.
        Good morning! It's a lovely day here.
    """,
    "han": """
        我姐姐下个月要搬到一套大一点的房子里。
        停车太贵了，所以我一般坐公交车上班。
        昨天晚上我们吃了蘑菇面。
        会议改到星期四下午了。
        我在学吉他，可是手指还是很疼。
        他忘了带伞，回家的时候全身都湿透了。
        谢谢，这样就没问题了！
        你可以先试试关机再重新打开。
        我们飞成都的航班晚点了三个小时。
        牙医让我半年以后再去一次。
        她当护士快二十年了。
        我受不了厨房里的鱼腥味。
        他们在屋子后面种了西红柿和香菜。
        请提醒我明天早上给银行打电话。
        新手机在暗处拍的照片好多了。
        周末我把那本书看完了，结局出乎意料。
        只要有人按门铃，他们家的狗就叫。
        雨下得太大，地下室都进水了。
        写报告的时候请用第二季度的数据。
        我爷爷以前是修钟表的。
        博物馆星期一不开门。
        我想多睡一会儿，少喝点咖啡。
        签合同之前有三件事要注意。
        孩子们用纸箱搭了一座城堡。
        我下楼梯的时候膝盖疼。
        好的，这是你那封信的简短版本。
        那家酒店我们花了太多钱。
        这个函数返回按名字排序的所有用户。
        他卖掉了摩托车，买了一条小船。
        下午我更喜欢喝茶。
        球队在决赛里输了一分。
        更新以后密码软件就不能自动填写了。
        我们春天订的婚，九月办婚礼。
        健康的早餐可以有燕麦、水果和酸奶。
        她在大学里学历史。
        洗衣机脱水的时候声音很奇怪。
        旅行的钱我已经存了一半左右。
        你说得对，第二步我弄错了。
        因为修路，路上堵得厉害。
        早上好！今天天气真不错。
    """,
    "kana": """
        姉は来月もっと広い部屋に引っ越します。
        昨日の夜はきのこのパスタを食べました。
        会議は木曜日の午後に変わりました。
        ありがとう、うまくいきました！
        飛行機が三時間も遅れました。
        祖父は時計を直す仕事をしていました。
        階段を下りるとひざが痛いです。
        この関数は名前の順にユーザーのリストを返します。
        午後はお茶のほうが好きです。
        工事のせいで道がとても混んでいました。
    """,
    "hangul": """
        언니는 다음 달에 더 넓은 집으로 이사해요.
        어제 저녁에 버섯 파스타를 먹었어요.
        회의가 목요일 오후로 바뀌었습니다.
        고마워요, 잘 됐어요!
        비행기가 세 시간이나 늦었어요.
        할아버지는 시계를 고치는 일을 하셨어요.
        계단을 내려갈 때 무릎이 아파요.
        이 함수는 이름순으로 사용자 목록을 돌려줍니다.
        오후에는 차를 더 좋아해요.
        공사 때문에 길이 많이 막혔어요.
    """,
    "cyrillic": """
        Сестра в следующем месяце переезжает в квартиру побольше.
        Вчера вечером мы ели пасту с грибами.
        Встречу перенесли на четверг, на вторую половину дня.
        Спасибо, всё получилось!
        Наш рейс задержали на три часа.
        Дедушка раньше чинил часы.
        У меня болит колено, когда я спускаюсь по лестнице.
        Функция возвращает список пользователей, отсортированный по имени.
        После обеда я больше люблю чай.
        Из-за ремонта дороги были ужасные пробки.
    """,
    "arabic": """
        ستنتقل أختي إلى شقة أكبر في الشهر القادم.
        تناولنا المعكرونة مع الفطر على العشاء أمس.
        تم تأجيل الاجتماع إلى بعد ظهر يوم الخميس.
        شكرا، لقد نجح الأمر تماما!
        تأخرت رحلتنا ثلاث ساعات.
        كان جدي يصلح الساعات.
        تؤلمني ركبتي عندما أنزل الدرج.
        تعيد هذه الدالة قائمة المستخدمين مرتبة حسب الاسم.
        أفضل الشاي بعد الظهر.
        كان الازدحام شديدا بسبب أعمال الطريق.
    """,
    "devanagari": """
        मेरी बहन अगले महीने बड़े घर में जा रही है।
        कल रात हमने मशरूम वाला पास्ता खाया।
        बैठक गुरुवार की दोपहर को कर दी गई है।
        धन्यवाद, यह बिल्कुल ठीक हो गया!
        हमारी उड़ान तीन घंटे देर से चली।
        मेरे दादाजी घड़ियाँ ठीक करते थे।
        सीढ़ियाँ उतरते समय मेरे घुटने में दर्द होता है।
        यह फ़ंक्शन नाम के क्रम में उपयोगकर्ताओं की सूची देता है।
        दोपहर में मुझे चाय ज़्यादा पसंद है।
        सड़क के काम की वजह से बहुत जाम था।
    """,
    "thai": """
        พี่สาวของฉันจะย้ายไปอยู่ห้องที่ใหญ่กว่าเดือนหน้า
        เมื่อคืนเรากินพาสต้าใส่เห็ด
        การประชุมเลื่อนไปเป็นบ่ายวันพฤหัสบดี
        ขอบคุณ ใช้ได้ดีเลย
        เที่ยวบินของเราล่าช้าสามชั่วโมง
        คุณปู่เคยซ่อมนาฬิกา
        ฉันปวดเข่าเวลาเดินลงบันได
        ฟังก์ชันนี้คืนรายชื่อผู้ใช้เรียงตามชื่อ
        ตอนบ่ายฉันชอบดื่มชามากกว่า
        รถติดมากเพราะมีการซ่อมถนน
    """,
}
ASKED = {
    "latin": """
        Where does my sister live now?
        How do I usually get to work?
        What did we have for dinner yesterday?
        When is the next meeting?
        Which instrument am I learning?
        Who forgot his umbrella?
        What did you suggest about the printer?
        How long was our flight delayed?
        When do I have to see the dentist again?
        What is her job?
        Is there anything I can't stand in the kitchen?
        Which vegetables did they plant?
        What should I do tomorrow morning?
        Why did I buy a new phone?
        What was the book about?
        Do they have a pet?
        What happened to the cellar?
        Which figures belong in the report?
        What did my grandfather do for a living?
        On which day is the museum closed?
        Have I changed my habits lately?
        What do I need to check before I sign?
        What did the children build?
        Since when does my knee hurt?
        How much did the hotel cost?
        What does the function return?
        Did he ever own a boat?
        What do I like to drink?
        Who won the final?
        When is the wedding?
        What could I eat in the morning?
        What does she study?
        What is wrong with the washing machine?
        How much money have I saved so far?
        Which step was wrong?
        What was the first thing I told you?
        Tell me what you know about my family.
        Can you recommend a film for tonight?
        What's the capital of Norway?
        How old am I?
    """,
    "han": """
        我姐姐现在住在哪里？
        我平时怎么去上班？
        昨天晚饭我们吃了什么？
        下次开会是什么时候？
        我在学什么乐器？
        谁忘了带伞？
        关于打印机你给过什么建议？
        我们的航班晚点了多久？
        我什么时候要再去看牙医？
        她是做什么工作的？
        厨房里有什么是我受不了的？
        他们种了什么菜？
        明天早上我该做什么？
        我为什么买了新手机？
        那本书讲的是什么？
        他们养宠物吗？
        地下室怎么了？
        报告里要用哪些数据？
        我爷爷以前是做什么的？
        博物馆哪天不开门？
        我最近改了什么习惯吗？
        签字之前要检查什么？
        孩子们搭了什么？
        我的膝盖从什么时候开始疼的？
        酒店花了多少钱？
        这个函数返回什么？
        他有过船吗？
        我喜欢喝什么？
        决赛谁赢了？
        婚礼是哪一天？
        早上我可以吃点什么？
        她学的是什么专业？
        洗衣机出了什么问题？
        我到现在存了多少钱？
        哪一步弄错了？
        我最先告诉你的是什么？
        说说你对我家人的了解。
        今晚看什么电影好？
        挪威的首都是哪里？
        我今年多大了？
    """,
    "kana": """
        姉は今どこに住んでいますか？
        昨日の夕食は何でしたか？
        次の会議はいつですか？
        プリンターについて何を勧めてくれましたか？
        飛行機はどのくらい遅れましたか？
        祖父の仕事は何でしたか？
        ひざはいつから痛いですか？
        この関数は何を返しますか？
        私は何を飲むのが好きですか？
        結婚式はいつですか？
    """,
    "hangul": """
        언니는 지금 어디에 살아요?
        어제 저녁에 뭘 먹었어요?
        다음 회의는 언제예요?
        프린터에 대해 뭘 추천했어요?
        비행기가 얼마나 늦었어요?
        할아버지는 무슨 일을 하셨어요?
        무릎은 언제부터 아팠어요?
        이 함수는 무엇을 돌려줘요?
        저는 뭘 마시는 걸 좋아해요?
        결혼식은 언제예요?
    """,
    "cyrillic": """
        Где сейчас живёт моя сестра?
        Что мы ели вчера на ужин?
        Когда следующая встреча?
        Что ты советовал насчёт принтера?
        На сколько задержали наш рейс?
        Кем работал мой дедушка?
        С каких пор у меня болит колено?
        Что возвращает эта функция?
        Что я люблю пить?
        Когда свадьба?
    """,
    "arabic": """
        أين تسكن أختي الآن؟
        ماذا أكلنا على العشاء أمس؟
        متى الاجتماع القادم؟
        ماذا اقترحت بشأن الطابعة؟
        كم تأخرت رحلتنا؟
        ماذا كان يعمل جدي؟
        منذ متى تؤلمني ركبتي؟
        ماذا تعيد هذه الدالة؟
        ماذا أحب أن أشرب؟
        متى حفل الزفاف؟
    """,
    "devanagari": """
        मेरी बहन अब कहाँ रहती है?
        कल रात के खाने में हमने क्या खाया?
        अगली बैठक कब है?
        प्रिंटर के बारे में तुमने क्या सुझाव दिया था?
        हमारी उड़ान कितनी देर से चली?
        मेरे दादाजी क्या काम करते थे?
        मेरे घुटने में कब से दर्द है?
        यह फ़ंक्शन क्या लौटाता है?
        मुझे क्या पीना पसंद है?
        शादी कब है?
    """,
    "thai": """
        ตอนนี้พี่สาวของฉันอยู่ที่ไหน
        เมื่อวานเรากินอะไรเป็นมื้อเย็น
        การประชุมครั้งต่อไปเมื่อไร
        คุณแนะนำอะไรเรื่องเครื่องพิมพ์
        เที่ยวบินของเราล่าช้านานเท่าไร
        คุณปู่เคยทำงานอะไร
        ฉันปวดเข่าตั้งแต่เมื่อไร
        ฟังก์ชันนี้คืนค่าอะไร
        ฉันชอบดื่มอะไร
        งานแต่งงานวันไหน
    """,
}


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


def measured(embedder: E5Embedder) -> np.ndarray:
    """Return the mean of each script: half of what is said, half of what is asked."""
    return np.stack([mean(embedder, script) for script in SCRIPTS])


def mean(embedder: E5Embedder, script: str) -> np.ndarray:
    said = embedder.uncentred(lines(SAID[script]), "passage").mean(axis=0)
    asked = embedder.uncentred(lines(ASKED[script]), "question").mean(axis=0)
    return (said + asked) / 2


def shown(embedder: E5Embedder) -> None:
    for known in SCRIPTS:
        said, asked = lines(SAID[known]), lines(ASKED[known])
        before = embedder.uncentred(asked, "question") @ embedder.uncentred(said, "passage").T
        after = embedder.embed_questions(asked) @ embedder.embed(said).T
        print(f"{known:12} {before.mean():.3f} ± {before.std():.3f}  ", end="")
        print(f"{after.mean():.3f} ± {after.std():.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    embedder = E5Embedder()
    if not parser.parse_args().check:
        with Path(FILE).open("wb") as file:
            np.save(file, measured(embedder).astype(np.float16), allow_pickle=False)
    shown(embedder)


if __name__ == "__main__":
    main()
